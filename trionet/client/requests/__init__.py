"""In-flight requests, responses, API versions and throttling."""
