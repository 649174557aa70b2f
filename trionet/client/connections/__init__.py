"""A client's connections: their states and addresses, and why brokers are unreachable."""
