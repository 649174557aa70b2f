"""An in-memory network with its own clock, and runs on it in virtual time."""
