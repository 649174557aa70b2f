"""A running broker: its nodes, their networks, background tasks, and reconfiguration."""
