"""The consumer, which reads records on its own or as a member of a group.

Names are loaded on first use (PEP 562): the settings alone do not load the consumer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._util._imports import lazy_exports

if TYPE_CHECKING:
    from ._consumer import Consumer
    from ._open_consumer import open_consumer
    from ._open_reader import open_reader, read_topic
    from ._process_records import process_records
    from .coordinator._classic_member import GroupMetadata
    from .records._record import ConsumerBatch, ConsumerRecord

__all__ = [
    "Consumer",
    "ConsumerBatch",
    "ConsumerRecord",
    "GroupMetadata",
    "open_consumer",
    "open_reader",
    "process_records",
    "read_topic",
]

#: The module that defines each name; it is imported when the name is first used.
_HOMES = {
    "_consumer": "Consumer",
    "_open_consumer": "open_consumer",
    "_open_reader": "open_reader read_topic",
    "_process_records": "process_records",
    "coordinator._classic_member": "GroupMetadata",
    "records._record": "ConsumerBatch ConsumerRecord",
}

if not TYPE_CHECKING:  # a type checker would accept every misspelt name
    __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
