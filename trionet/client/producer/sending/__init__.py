"""Sending batches in Produce requests, and retrying or completing them."""
