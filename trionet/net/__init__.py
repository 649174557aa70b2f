"""Connections: framing, Send and Receive, transports, channels, readiness, the Selector.

Independent of API keys and Kafka messages: frames are opaque bytes after an int32 size.
"""
