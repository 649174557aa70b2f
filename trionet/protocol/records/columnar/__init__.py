"""Decoding of records into NumPy arrays and Arrow columns (extra ``spark``)."""
