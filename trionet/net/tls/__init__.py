"""TLS: contexts, keystores, certificates, and the transport with its handshake."""
