"""Sender: sends batches in Produce requests, retries and completes them."""
