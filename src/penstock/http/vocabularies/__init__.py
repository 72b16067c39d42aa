"""The words and shapes of each API family."""
