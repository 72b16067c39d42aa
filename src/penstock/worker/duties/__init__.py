"""What a worker does beside its lanes, one duty a file."""
