"""Authentication: SASL exchanges, SCRAM credentials, and the TLS and SASL settings of listeners."""
