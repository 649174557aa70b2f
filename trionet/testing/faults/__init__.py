"""Fault injection: which requests a fault matches, and what it does with them."""
