"""Records as columns: NumPy arrays and Apache Arrow (extra ``spark``)."""
