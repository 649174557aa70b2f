"""Configuration: Kafka's keys and defaults, what a topic or listener overrides, and settings altered while the broker runs."""
