"""The API handlers: async functions, each registered for an API key and a range of versions.

Each module implements the APIs of one subject (Kafka: KafkaApis). Each API is served up to the
highest version of Apache Kafka 4.2, starting from the lowest version that trionet can encode.
"""
