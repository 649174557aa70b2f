"""The consumer, which reads records on its own or as a member of a group."""

from __future__ import annotations

from ._consumer import Consumer
from ._open_consumer import open_consumer
from .records._record import ConsumerBatch, ConsumerRecord

__all__ = ["Consumer", "ConsumerBatch", "ConsumerRecord", "open_consumer"]
