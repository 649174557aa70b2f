"""Fetched records as the user sees them: one by one, or in batches."""
