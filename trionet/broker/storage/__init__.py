"""Storage other than logs: the SQLite database, data directories and old record formats."""
