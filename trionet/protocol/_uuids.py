"""Kafka's UUIDs as text: ids of topics, clusters and log directories."""

from __future__ import annotations

import base64


def uuid_text(id: bytes | bytearray) -> str:
    """Format a UUID as Kafka does: 22 characters of URL-safe base64 (Kafka: Uuid.toString)."""
    return base64.urlsafe_b64encode(id).rstrip(b"=").decode("ascii")
