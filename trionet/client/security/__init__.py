"""Security of client connections: TLS, SASL and tokens."""
