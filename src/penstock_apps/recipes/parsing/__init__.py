"""From an address to a recipe: fetching a page, and the ways of reading it."""
