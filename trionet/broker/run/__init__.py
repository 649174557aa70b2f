"""A running broker: its nodes, networks, background tasks and reconfiguration."""
