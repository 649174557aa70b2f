"""Input of bytes: files, pipes and text, split into frames and batches."""
