"""The server's side of SASL mechanisms: pure state machines that know nothing of Kafka's frames."""
