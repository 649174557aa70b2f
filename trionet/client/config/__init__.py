"""Kafka's client keys, read and checked: from texts and keywords to the settings of a client."""
