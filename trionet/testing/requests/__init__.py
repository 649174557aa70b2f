"""Records the requests that a broker receives, with their topics and groups, for assertions."""
