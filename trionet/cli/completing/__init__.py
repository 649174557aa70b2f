"""Completion scripts for shells, generated from the parsers."""
