"""NetworkClient: requests to the nodes of a cluster and their responses."""
