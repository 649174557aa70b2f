"""The fetcher: fetch requests, fetch sessions and completed fetches."""
