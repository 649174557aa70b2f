"""Fetched records in the forms that users receive: one by one, or in batches."""
