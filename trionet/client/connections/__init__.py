"""The connections of a client: their states, addresses, and why a broker cannot be reached."""
