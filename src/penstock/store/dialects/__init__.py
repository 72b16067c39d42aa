"""The closed list of what differs between databases."""
