"""Flips a bit of the records in Produce requests and Fetch responses."""

from __future__ import annotations

import copy
from typing import Final

from ...protocol._wire import Message
from ...protocol.messages.fetch import FetchResponse
from ...protocol.messages.produce import ProduceRequest
from ..requests._seen_requests import Which
from ..requests._topic_items import TopicName, topic_of
from ._exchange import bytes_of

# All batch and message formats start with an offset and the size of what follows.
_SIZE_AT: Final = 8
_DATA_AT: Final = 12


def with_flipped_bit(records: bytes) -> bytes:
    """Return the records with the last bit of the first batch or message flipped.

    The checksum covers this bit. Data that is too short to be a batch is returned unchanged.
    """
    if len(records) <= _DATA_AT:
        return records
    size = int.from_bytes(records[_SIZE_AT:_DATA_AT], "big")
    last = min(_DATA_AT + size, len(records)) - 1
    return records[:last] + bytes([records[last] ^ 1]) + records[last + 1 :]


def corrupted_request(request: ProduceRequest, which: Which, name_of: TopicName) -> ProduceRequest:
    """Return a copy of a request with one bit flipped in each matching partition's records."""
    changed = copy.copy(request)
    changed.topic_data = [copy.copy(topic) for topic in request.topic_data]
    for topic in changed.topic_data:
        topic.partition_data = [copy.copy(partition) for partition in topic.partition_data]
        for partition in topic.partition_data:
            if partition.records and _is_meant(topic, partition.index, which, name_of):
                partition.records = with_flipped_bit(bytes(partition.records))
    return changed


def corrupt_response(response: FetchResponse, which: Which, name_of: TopicName) -> None:
    """Flip one bit in each matching partition's records, in place."""
    for topic in response.responses:
        for partition in topic.partitions:
            if partition.records and _is_meant(topic, partition.partition_index, which, name_of):
                partition.records = with_flipped_bit(bytes_of(partition.records))


def _is_meant(topic: Message, partition: int, which: Which, name_of: TopicName) -> bool:
    name = topic_of(topic, name_of)
    return name is None or which.hits(name, partition)
