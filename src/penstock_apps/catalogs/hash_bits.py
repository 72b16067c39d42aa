"""What is known of perceptual hashes without a library for pictures."""

BITS = 64
NO_HASH = 0
"""The hash of a picture that there is nothing to compare of."""
