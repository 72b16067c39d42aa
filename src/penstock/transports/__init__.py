"""Carrying messages out of the outbox."""
