"""TLS: contexts and keystores, the transport with its handshake, certificates."""
