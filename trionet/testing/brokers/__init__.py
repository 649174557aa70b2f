"""Brokers under test: in the test's own trio loop or in a thread, plain or with TLS and SASL."""
