"""What may be asked of the engine, one verb a file. Each works in a transaction it is given and never commits."""
