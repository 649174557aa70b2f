"""What Apache Kafka responds to transactional requests, scenario by scenario.

Each scenario is a list of requests with raw connections; every response becomes a line, in which
producer ids, topics and the coordinator's epoch have names. The file
``tests/interop/transaction_rules.json`` has the lines of Apache Kafka; ``python -m
support.transaction_rules`` in ``tests`` writes it.
"""
