"""Completion in shells, made of the parsers."""
