"""TLS: contexts and key stores, the transport with its handshake, certificates."""
