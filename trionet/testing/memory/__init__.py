"""An in-memory network with its own clock, on which programs run in virtual time."""
