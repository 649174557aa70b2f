"""Fetched records in the forms in which users receive them: one by one, or in batches."""
