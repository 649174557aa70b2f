"""Helpers for commands that open clients: connection options, admin clients, and errors."""
