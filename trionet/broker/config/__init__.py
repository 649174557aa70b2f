"""The broker's configuration: Kafka's keys and defaults, overrides, and changes at run time."""
