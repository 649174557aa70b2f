"""The producer: gathers records into batches and sends them to the leaders of their partitions."""

from .deliveries import Deliveries
from .delivery import Delivery, RecordMetadata
from .hooks import Acknowledgement, ProducerRecord
from .opening import open_producer
from .producer import Producer

__all__ = [
    "Acknowledgement",
    "Deliveries",
    "Delivery",
    "Producer",
    "ProducerRecord",
    "RecordMetadata",
    "open_producer",
]
