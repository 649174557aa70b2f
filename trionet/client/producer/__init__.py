"""The producer: records into batches, batches to the leaders of their partitions."""

from .delivery import Delivery, RecordMetadata
from .opening import open_producer
from .producer import Producer

__all__ = ["Delivery", "Producer", "RecordMetadata", "open_producer"]
