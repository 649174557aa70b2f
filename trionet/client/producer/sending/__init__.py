"""Sending batches in Produce requests, numbering them, and retrying or completing them."""
