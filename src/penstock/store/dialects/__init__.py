"""What differs between databases: the contract (``dialect``), and a folder for each that keeps it."""
