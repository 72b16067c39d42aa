"""Recipes from the web: parse a page once for everybody, keep what people save, forget what they don't."""
