"""The consumer, which reads records on its own or as a member of a group."""

from __future__ import annotations

from ._consumer import Consumer
from ._open_consumer import open_consumer
from .coordinator._classic_member import GroupMetadata
from .records._record import ConsumerBatch, ConsumerRecord

__all__ = ["Consumer", "ConsumerBatch", "ConsumerRecord", "GroupMetadata", "open_consumer"]
