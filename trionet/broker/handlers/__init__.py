"""The handlers of the APIs: async functions, each declared with its key and versions.

Each module has one API, or several closely related ones; the APIs of groups and of settings have
folders. The versions are those of Apache Kafka 4.2, from the lowest that this broker has codecs
for.
"""
