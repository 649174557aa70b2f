"""Small things that belong to no layer."""
