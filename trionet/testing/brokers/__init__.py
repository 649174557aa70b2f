"""Brokers under test, in the test's own trio loop or in a thread, with or without TLS and SASL."""
