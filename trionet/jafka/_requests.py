"""The values of Jafka's protocol: requests, messages, and what the codec finds in bytes."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple, TypeAlias

from ..net.wire._framing import SIZE_BYTES

Bytes: TypeAlias = bytes | bytearray | memoryview

_unpack_size: Final = Struct(">i").unpack_from


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

    def requests(self) -> Iterator[memoryview]:
        """Yield the requests without their size prefixes."""
        with memoryview(self) as view:
            position = 0
            while position < len(view):
                end = position + SIZE_BYTES + _unpack_size(view, position)[0]
                yield view[position + SIZE_BYTES : end]
                position = end


class Message(NamedTuple):
    """A message, and the offset to fetch from next, which is the position after the message.

    Inside a compressed entry every message but the last has the position of the entry itself, so
    that a consumer that stops in the middle gets the whole entry again.
    """

    payload: memoryview
    next_offset: int


class Entry(NamedTuple):
    """A complete entry with a correct CRC; ``stop`` is the position after it."""

    codec: int
    payload: memoryview
    stop: int


class CheckedSet(NamedTuple):
    """The result of :func:`check_set`.

    Attributes:
        stop: where the entries end that have been checked.
        messages: the number of uncompressed messages.
        compressed: the compressed payloads, for :func:`check_compressed`.
        is_whole: whether nothing follows but at most an incomplete entry.
    """

    stop: int
    messages: int
    compressed: list[memoryview]
    is_whole: bool
