"""Standard input and output of commands, confirmation, progress and signals."""
