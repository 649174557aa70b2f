"""The consumer: reads records, alone or as a member of a group."""

from __future__ import annotations

from .consumer import Consumer
from .opening import open_consumer
from .record import ConsumerBatch, ConsumerRecord

__all__ = ["Consumer", "ConsumerBatch", "ConsumerRecord", "open_consumer"]
