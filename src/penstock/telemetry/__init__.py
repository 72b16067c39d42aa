"""What Penstock tells those who run it."""
