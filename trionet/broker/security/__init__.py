"""Authentication: the SASL exchange, SCRAM credentials, and the TLS and SASL settings of listeners."""
