"""Input from files, pipes and text, split into frames and batches."""
