"""The values of Jafka's protocol: requests, messages, and what the codec finds in bytes."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

Bytes: TypeAlias = bytes | bytearray | memoryview


class ProducerRequest(NamedTuple):
    """Append a message set to a partition; without a response."""

    topic: str | None
    partition: int
    messages: Bytes


class FetchRequest(NamedTuple):
    """Read up to ``bytes_max`` bytes of a partition, from the position ``offset`` on."""

    topic: str | None
    partition: int
    offset: int
    bytes_max: int


class MultiFetchRequest(NamedTuple):
    """Several fetches with one response, in which each has an error of its own."""

    parts: tuple[FetchRequest, ...]


class MultiProducerRequest(NamedTuple):
    """Several appends, in order and not atomic; without a response."""

    parts: tuple[ProducerRequest, ...]


class OffsetRequest(NamedTuple):
    """Look up offsets before a time: milliseconds since 1970, or LATEST or EARLIEST."""

    topic: str | None
    partition: int
    time: int
    count_max: int


class CreaterRequest(NamedTuple):
    """Set the number of a topic's partitions; ``enlarge`` is 1 for yes, and ignored by servers."""

    topic: str | None
    partitions: int
    enlarge: int


class DeleterRequest(NamedTuple):
    """Delete a topic; requires the server's password."""

    topic: str | None
    password: str | None


JafkaRequest: TypeAlias = (
    ProducerRequest
    | FetchRequest
    | MultiFetchRequest
    | MultiProducerRequest
    | OffsetRequest
    | CreaterRequest
    | DeleterRequest
)


class Produced(bytes):
    """Whole requests to produce, each with its size prefix, from one read of a connection."""

    __slots__ = ()


class Message(NamedTuple):
    """A message, and the offset to fetch from next, which is the position after the message.

    Inside a compressed entry every message but the last has the position of the entry itself, so
    that a consumer that stops in the middle gets the whole entry again.
    """

    payload: memoryview
    next_offset: int
