"""The clients that commands open, and why a cluster could not be reached."""
