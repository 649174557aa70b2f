"""Sending of batches in Produce requests, retries, and completion."""
