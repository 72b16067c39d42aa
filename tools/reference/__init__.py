"""The pages of docs/reference, one to a file."""
