"""Small helpers for all layers."""
