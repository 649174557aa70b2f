"""The generated messages: one module per API."""
