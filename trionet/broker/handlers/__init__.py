"""The handlers of the APIs: async functions that are registered with an API key and versions.

Each module implements one API or several closely related APIs. The group and configuration APIs
have their own folders. Each API is served up to the highest version of Apache Kafka 4.2, starting
from the lowest version that trionet can encode.
"""
