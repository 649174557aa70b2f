"""Data that is not a log: the SQLite database, data folders, old record formats."""
