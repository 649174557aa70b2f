"""The producer, which batches records and sends the batches to the partition leaders."""

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
