"""SASL mechanisms as state machines without I/O, and checks of their credentials."""
