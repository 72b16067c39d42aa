"""PostgreSQL, the one for scale."""
