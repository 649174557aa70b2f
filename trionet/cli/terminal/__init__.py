"""Standard input and output: tables, JSON and CSV, confirmation, progress, pipes, signals."""
