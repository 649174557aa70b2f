"""Requests in flight, their responses, API versions and throttling."""
