"""The cluster: its nodes, features, quorum and log directories."""
