"""How much one recipe may hold, wherever it comes from."""

MAX_LINES = 5_000
"""Of ingredients, and of steps: a page has the others left out, with a warning; who sends more is refused."""
