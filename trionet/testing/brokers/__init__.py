"""Brokers under test: on the test's own loop or in a thread, plain or with TLS and SASL."""
