"""Files as the operating system has them: opening, locking, syncing, and their limits."""
