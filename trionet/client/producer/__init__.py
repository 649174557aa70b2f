"""The producer, which batches records and sends the batches to the partition leaders.

Names are loaded on first use (PEP 562): the settings alone do not load the producer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._util._imports import lazy_exports

if TYPE_CHECKING:
    from ._deliveries import Deliveries
    from ._delivery import Delivery, RecordMetadata
    from ._hooks import Acknowledgement, ProducerRecord
    from ._open_producer import open_producer
    from ._producer import Producer
    from ._transactions import Transaction

__all__ = [
    "Acknowledgement",
    "Deliveries",
    "Delivery",
    "Producer",
    "ProducerRecord",
    "RecordMetadata",
    "Transaction",
    "open_producer",
]

#: The module that defines each name; it is imported when the name is first used.
_HOMES = {
    "_deliveries": "Deliveries",
    "_delivery": "Delivery RecordMetadata",
    "_hooks": "Acknowledgement ProducerRecord",
    "_open_producer": "open_producer",
    "_producer": "Producer",
    "_transactions": "Transaction",
}

if not TYPE_CHECKING:  # a type checker would accept every misspelt name
    __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
