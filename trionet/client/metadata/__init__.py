"""The cluster as seen by a client: Metadata and its updaters."""
