"""Handling records concurrently: which record may start, and how far may be committed. Pure."""
