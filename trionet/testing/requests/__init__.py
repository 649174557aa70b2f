"""The requests that a broker received: their names, topics and groups, recorded for assertions."""
