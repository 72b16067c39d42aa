"""The adaptive controllers, one by one and together in a simulation."""
