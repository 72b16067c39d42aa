"""The rules, without I/O: states, the transition table, vocabularies, policies and decisions."""
