"""What ``penstock demo`` shows."""
