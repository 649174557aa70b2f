"""One module per API: its key and served versions, and ``async handle(broker, request, call)``.

The versions are those of Apache Kafka 4.2, from the lowest that this broker has codecs for.
"""
