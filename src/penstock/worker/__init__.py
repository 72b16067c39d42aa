"""Doing the work: claim, run, record, in slices; and the duties that keep everything honest."""
