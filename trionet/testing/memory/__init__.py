"""An in-memory network with a clock of its own, and runs in virtual time on it."""
