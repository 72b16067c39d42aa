"""Photos of recipes: their text is seen, put in order, and taken for title, ingredients and steps."""
