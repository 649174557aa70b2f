"""Decoded entries as text lines and as JSON documents."""
