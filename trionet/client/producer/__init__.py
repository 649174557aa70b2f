"""The producer, which batches records and sends the batches to the partition leaders."""

from ._open_producer import open_producer
from ._producer import Producer
from .delivery._deliveries import Deliveries
from .delivery._delivery import Delivery, RecordMetadata
from .sending._hooks import Acknowledgement, ProducerRecord

__all__ = [
    "Acknowledgement",
    "Deliveries",
    "Delivery",
    "Producer",
    "ProducerRecord",
    "RecordMetadata",
    "open_producer",
]
