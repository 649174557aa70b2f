"""One module per API: ``async handle(broker, request, call)``, with its key and versions.

The versions are those of Apache Kafka 4.2, from the lowest that this broker has codecs for.
"""
