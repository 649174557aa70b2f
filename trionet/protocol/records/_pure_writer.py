"""Records into a batch's body: Python as the interpreter likes it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Final

from trionet.errors import LocalProtocolError
from trionet.protocol.records._batch import HEADER_SIZE, Bytes
from trionet.protocol.records._types import Headers, NewRecord, as_bytes

#: The length of a batch is an int32.
BATCH_BYTES_MAX: Final = 2**31 - 1

#: Beyond any size.
NO_LIMIT: Final = 2**62

#: The largest timestamp of no records.
NO_TIMESTAMP: Final = -(2**63)

#: How much is joined at a time. A larger piece of memory is new to the process each time, and
#: touching its pages costs more than filling them.
CHUNK_BYTES: Final = 64 * 1024


class _Zigzag(dict[int, bytes]):
    """Numbers to their zigzag varints; the common ones stay."""

    def __missing__(self, number: int) -> bytes:
        if not -(2**63) <= number < 2**63:
            raise LocalProtocolError(f"{number} does not fit into a varlong")
        rest = number << 1 if number >= 0 else (-number << 1) - 1
        out = bytearray()
        while rest > 127:
            out.append(rest & 127 | 128)
            rest >>= 7
        out.append(rest)
        encoded = bytes(out)
        if -64 <= number < 8192:
            self[number] = encoded
        return encoded


_zigzag: Final = _Zigzag()
_NULL: Final = _zigzag[-1]
_NO_HEADERS: Final = _zigzag[0]
_NO_ATTRIBUTES: Final = b"\0"
_join: Final = b"".join


class BatchBuilder:
    """Records on their way into one batch.

    Args:
        size_max: how large the batch may get in bytes, before compression.
        base_timestamp: what timestamps are stored relative to, in milliseconds; None for the first
            record's. A delete horizon takes its place (KIP-534).

    Attributes:
        count: how many records there are.
        size: of the batch in bytes, exactly, if it ended now and were not compressed.
        last_offset_delta: the last record's offset minus the batch's; -1 without records.
        base_timestamp: in milliseconds.
        max_timestamp: the largest so far, in milliseconds.
    """

    __slots__ = (
        "_base",
        "_chunks",
        "_join_at",
        "_parts",
        "_size_max",
        "count",
        "last_offset_delta",
        "max_timestamp",
        "size",
    )

    def __init__(
        self, size_max: int = BATCH_BYTES_MAX, *, base_timestamp: int | None = None
    ) -> None:
        self.count = 0
        self.size = HEADER_SIZE
        self.last_offset_delta = -1
        self.max_timestamp = NO_TIMESTAMP
        self._base = None if base_timestamp is None else _checked(base_timestamp)
        self._size_max = size_max
        self._chunks: list[bytes] = []
        self._parts: list[bytes] = []
        self._join_at = CHUNK_BYTES

    def append(
        self,
        timestamp: int,
        key: Bytes | None,
        value: Bytes | None,
        headers: Headers = (),
        size_max: int = NO_LIMIT,
    ) -> bool:
        """Add a record with the next offset.

        After an error the builder holds what it held before.

        Args:
            timestamp: in milliseconds.
            key: None for null.
            value: None for null.
            headers: names and values.
            size_max: the record is left out if the batch would be larger with it, in bytes and
                before compression; an empty batch takes any.

        Returns:
            Whether it was added.

        Raises:
            LocalProtocolError: the timestamp is beyond 64 bits, or too far from the first one.
            TypeError: the key or the value is neither bytes nor None.
        """
        zigzag = _zigzag
        base = self._base
        when = zigzag[0 if base is None else timestamp - base]
        offset_delta = self.last_offset_delta + 1
        if key is None:
            key = b""
            key_length = _NULL
        else:
            if type(key) is not bytes:
                key = as_bytes(key)
            key_length = zigzag[len(key)]
        if value is None:
            value = b""
            value_length = _NULL
        else:
            if type(value) is not bytes:
                value = as_bytes(value)
            value_length = zigzag[len(value)]
        tail = _encode_headers(headers) if headers else _NO_HEADERS
        record = _join(
            (_NO_ATTRIBUTES, when, zigzag[offset_delta], key_length, key, value_length, value, tail)
        )
        length = zigzag[len(record)]
        size = self.size + len(length) + len(record)
        if size > size_max and self.count:
            return False
        if timestamp > self.max_timestamp:
            self.max_timestamp = timestamp if timestamp < 2**63 else _checked(timestamp)
        if base is None:
            self._base = _checked(timestamp)
        self.count += 1
        self.last_offset_delta = offset_delta
        self._parts += length, record
        self.size = size
        if size >= self._join_at:
            self._chunks.append(_join(self._parts))
            self._parts.clear()
            self._join_at = size + CHUNK_BYTES
        return True

    def append_columns(
        self,
        start: int,
        stop: int,
        timestamps: int | list[int],
        keys: list[Bytes | None] | None,
        values: list[Bytes | None],
        headers: list[Headers] | None,
        size_max: int,
    ) -> int:
        """Add the records of some columns, as long as there is room for them.

        Args:
            start: the number of the first one.
            stop: the number of the one after the last.
            timestamps: in milliseconds; one number is every record's.
            keys: without, no record has a key.
            values: None for null.
            headers: without, no record has any.
            size_max: as for :meth:`append`.

        Returns:
            The number of the first one that was not added.

        Raises:
            LocalProtocolError: as :meth:`append`; the records before that one were added.
            TypeError: as there.
        """
        append = self.append
        for number in range(start, stop):
            timestamp = timestamps if isinstance(timestamps, int) else timestamps[number]
            key = None if keys is None else keys[number]
            header = () if headers is None else headers[number]
            if not append(timestamp, key, values[number], header, size_max):
                return number
        return stop

    def append_at(
        self,
        offset_delta: int,
        timestamp: int,
        key: Bytes | None,
        value: Bytes | None,
        headers: Headers = (),
    ) -> None:
        """Add a record with a gap before it, as compaction leaves them.

        Args:
            offset_delta: the record's offset minus the batch's, larger than of those before it.
            timestamp: this and what follows: as for :meth:`append`.
            key: as there.
            value: as there.
            headers: as there.

        Raises:
            ValueError: the offset is not larger.
            LocalProtocolError: as there.
            TypeError: as there.
        """
        last = self.last_offset_delta
        if offset_delta <= last:
            raise ValueError(f"offset {offset_delta} does not come after {last}")
        self.last_offset_delta = offset_delta - 1
        try:
            self.append(timestamp, key, value, headers)
        finally:
            if self.last_offset_delta != offset_delta:
                self.last_offset_delta = last

    def has_room_for(
        self, timestamp: int, key: Bytes | None, value: Bytes | None, headers: Headers = ()
    ) -> bool:
        """Whether the batch stays within its size with this record; an empty one takes any.

        As Kafka's MemoryRecordsBuilder, but exact: what compression saves does not count.
        """
        if not self.count:
            return True
        size = (
            1
            + len(_zigzag[timestamp - self.base_timestamp])
            + len(_zigzag[self.last_offset_delta + 1])
            + len(_NULL if key is None else _zigzag[len(key)])
            + len(key or b"")
            + len(_NULL if value is None else _zigzag[len(value)])
            + len(value or b"")
            + len(_encode_headers(headers) if headers else _NO_HEADERS)
        )
        return self.size + len(_zigzag[size]) + size <= self._size_max

    def chunks(self) -> list[bytes]:
        """What follows the header of the batch, in pieces."""
        return [*self._chunks, b"".join(self._parts)] if self._parts else [*self._chunks]

    @property
    def base_timestamp(self) -> int:
        """What timestamps are stored relative to, in milliseconds; 0 as long as that is open."""
        return self._base or 0


def build_rows(rows: Iterable[NewRecord]) -> BatchBuilder:
    """A builder with these records.

    Raises:
        LocalProtocolError: a timestamp is beyond 64 bits, or too far from the first one.
        TypeError: a key or a value is neither bytes nor None.
    """
    builder = BatchBuilder()
    append = builder.append
    for timestamp, key, value, headers in rows:
        append(timestamp, key, value, headers)
    return builder


def build_columns(
    timestamps: int | Sequence[int],
    keys: Sequence[bytes | None] | None,
    values: Sequence[bytes | None],
    headers: Sequence[Headers] | None,
) -> BatchBuilder:
    """A builder with these records; one timestamp stands for all, and None for nothing in any.

    Columns are of one length.

    Raises:
        LocalProtocolError: as :func:`build_rows`.
        TypeError: as there.
    """
    return build_rows(
        zip(
            repeat(timestamps) if isinstance(timestamps, int) else timestamps,
            repeat(None) if keys is None else keys,
            values,
            repeat(()) if headers is None else headers,
            strict=False,
        )
    )


def _checked(timestamp: int) -> int:
    if not -(2**63) <= timestamp < 2**63:
        raise LocalProtocolError(f"a timestamp of {timestamp} does not fit into 64 bits")
    return timestamp


def _encode_headers(headers: Headers) -> bytes:
    parts = [_zigzag[len(headers)]]
    for name, value in headers:
        key = name.encode()
        parts += _zigzag[len(key)], key
        if value is None:
            parts.append(_NULL)
        else:
            value = as_bytes(value)
            parts += _zigzag[len(value)], value
    return b"".join(parts)
