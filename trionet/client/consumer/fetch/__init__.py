"""Fetcher: fetch requests, sessions, and completed fetches."""
