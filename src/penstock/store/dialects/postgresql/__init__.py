"""PostgreSQL, for more than one machine."""
