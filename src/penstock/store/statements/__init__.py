"""Every statement, one function each: it returns the statement and never runs it. Files are named by their use."""
