"""The state of a consumer: subscription, assignment, positions and pending errors."""
