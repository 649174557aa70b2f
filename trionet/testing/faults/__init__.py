"""Fault injection: rules that match requests, and the actions applied to them."""
