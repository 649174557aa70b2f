"""The results of sent records."""
