"""The state of a cluster and its nodes: topics, leaders, delayed operations, fetch sessions."""
