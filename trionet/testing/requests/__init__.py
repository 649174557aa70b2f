"""Records the requests that a broker received, with their topics and groups, for assertions."""
