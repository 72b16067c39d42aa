"""Where everything is kept. The only package that knows SQL."""
