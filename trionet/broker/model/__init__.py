"""The state of a cluster and its nodes: topics, leadership, delayed operations, fetch sessions."""
