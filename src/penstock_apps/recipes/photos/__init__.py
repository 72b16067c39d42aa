"""Photos of recipes: read by a library for text in pictures, put in order, and taken for title, ingredients and steps."""
