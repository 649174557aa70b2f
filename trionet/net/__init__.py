"""Connections: framing, Send and Receive, transports, channels, readiness, the Selector.

Nothing here knows API keys or Kafka messages; frames are opaque bytes behind an int32 size.
"""
