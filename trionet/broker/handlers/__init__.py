"""The API handlers: async functions, each registered for an API key and a range of versions.

Each module implements one API or several closely related APIs. The group and configuration APIs
have their own packages. Each API is served up to the highest version of Apache Kafka 4.2, starting
from the lowest version that trionet can encode.
"""
