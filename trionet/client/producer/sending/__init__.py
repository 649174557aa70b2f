"""Sender: batches to Produce requests, retries, and their completion."""
