"""Every statement, as a function that runs it: its signature says what goes in and what comes out.

A query is a function of a transaction. It runs one statement, which a private function beneath it builds once for each
dialect, and it is known by its name in logs, in EXPLAIN tests and in benches. Rows come back as the NamedTuple that the
query declares; a statement whose columns are not its fields is refused when it is first prepared.
"""
