"""Prepares producers' batches for an append: validation, recompression, offset assignment."""
