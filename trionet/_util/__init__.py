"""Small helpers that are shared by all layers."""
