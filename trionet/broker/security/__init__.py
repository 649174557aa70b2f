"""Authentication: the SASL exchange, SCRAM credentials, and listeners' TLS and SASL settings."""
