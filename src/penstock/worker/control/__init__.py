"""Small pure controllers: they observe samples and answer a setting. No I/O."""
