"""The text of Kafka's ids: of topics, clusters and folders."""

from __future__ import annotations

import base64


def uuid_text(id: bytes | bytearray) -> str:
    """How Kafka writes an id: 22 characters of URL-safe base64 (Kafka: Uuid.toString)."""
    return base64.urlsafe_b64encode(id).rstrip(b"=").decode("ascii")
