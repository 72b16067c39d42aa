"""Products from tables and photographs: each one is cleaned, looked up at retailers, and checked before it counts."""
