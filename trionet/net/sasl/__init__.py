"""SASL mechanisms: pure state machines, independent of Kafka's frames."""
