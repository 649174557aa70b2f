"""Parsing and validation of clients' configurations, by Kafka's keys."""
