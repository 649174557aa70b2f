"""Storage other than logs: the SQLite database, data folders and old record formats."""
