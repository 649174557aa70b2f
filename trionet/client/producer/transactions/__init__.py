"""The transactions of a producer, and the numbers that make its batches unique."""
