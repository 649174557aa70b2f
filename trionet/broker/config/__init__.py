"""Configuration: Kafka's keys and defaults, overrides, and changes while the broker runs."""
