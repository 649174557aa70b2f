"""NetworkClient: sends requests to the nodes of a cluster and receives their responses."""
