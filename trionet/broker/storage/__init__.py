"""Data that is not a log: the SQLite database, data folders, and conversion of old record formats."""
