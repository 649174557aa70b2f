"""Parsing and validation of client configurations with Kafka's keys."""
