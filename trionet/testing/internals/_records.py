"""Records as plain values: what is in a topic, and what is to be put there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import trio

from ...broker.log import Log
from ...broker.log._recompression import recompress
from ...protocol.records._batch import iter_batches
from ...protocol.records._records import decode_batch, encode_batch

# How much is read of a log in one go.
_READ_BYTES: Final = 1024 * 1024
# How many records are put into one batch, and about how many bytes of them; one larger is alone.
_BATCH_RECORDS_MAX: Final = 500
_BATCH_BYTES_MAX: Final = 256 * 1024

Text = str | bytes | None
"""A key or a value; a str is put there as UTF-8, None as null."""

_FIELDS = ("partition", "key", "value", "headers", "timestamp")


class Record(NamedTuple):
    """One record of a topic; equal to a tuple of the same.

    Attributes:
        partition: the number of its partition.
        offset: its place there.
        key: None for null.
        value: None for null, which deletes the key in a compacted topic.
        headers: names and values.
        timestamp: in ms since the epoch.
    """

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: int


class NewRecord(NamedTuple):
    """A record that is to be put into a topic; None where the topic decides."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int | None = None
    timestamp: int | None = None


Seed = Text | tuple[Text, Text] | Mapping[str, object] | Record
"""What a test may write for a record: its value; its key and its value; or a dict of any of
``partition``, ``key``, ``value``, ``headers`` and ``timestamp``."""


def new_record(seed: Seed) -> NewRecord:
    """The record that a test means.

    Raises:
        TypeError: it is none of what is allowed.
        ValueError: a field is unknown.
    """
    if isinstance(seed, Record):
        return NewRecord(seed.key, seed.value, seed.headers, seed.partition, seed.timestamp)
    if seed is None or isinstance(seed, (str, bytes)):
        return NewRecord(None, _bytes(seed, "value"))
    if isinstance(seed, tuple) and len(seed) == 2:
        return NewRecord(_bytes(seed[0], "key"), _bytes(seed[1], "value"))
    if isinstance(seed, Mapping):
        return _from_fields(seed)
    raise TypeError(
        f"{seed!r} is no record; allowed: a value, a tuple of a key and a value, or a dict of"
        f" {', '.join(_FIELDS)}; keys and values are str, bytes or None"
    )


def _from_fields(fields: Mapping[str, object]) -> NewRecord:
    unknown = fields.keys() - set(_FIELDS)
    if unknown:
        raise ValueError(f"{sorted(unknown)}: no field of a record; allowed: {', '.join(_FIELDS)}")
    return NewRecord(
        _bytes(fields.get("key"), "key"),
        _bytes(fields.get("value"), "value"),
        _headers(fields.get("headers")),
        _number(fields.get("partition"), "partition"),
        _number(fields.get("timestamp"), "timestamp"),
    )


def _bytes(value: object, field: str) -> bytes | None:
    if isinstance(value, str):
        return value.encode()
    if value is None or isinstance(value, bytes):
        return value
    raise TypeError(f"the {field} {value!r} is not allowed; allowed: str, bytes or None")


def _number(value: object, field: str) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    raise TypeError(f"the {field} {value!r} is not allowed; allowed: 0 or more, or None")


def _headers(value: object) -> tuple[tuple[str, bytes | None], ...]:
    pairs = value.items() if isinstance(value, Mapping) else value or ()
    headers = []
    for pair in pairs if isinstance(pairs, Iterable) else (pairs,):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not isinstance(pair[0], str):
            raise TypeError(f"{pair!r} is no header; allowed: a name (str) and a value")
        headers.append((pair[0], _bytes(pair[1], "header")))
    return tuple(headers)


def place(records: Iterable[NewRecord], partitions: int) -> dict[int, list[NewRecord]]:
    """Which partition each record goes to, of as many as there are.

    One with a key goes where Kafka's own producer puts it; those without take turns.

    Raises:
        ValueError: one names a partition that there is not.
    """
    placed: dict[int, list[NewRecord]] = {}
    turn = 0
    for record in records:
        index = record.partition
        if index is None and record.key is not None:
            index = (murmur2(record.key) & 0x7FFFFFFF) % partitions
        elif index is None:
            index, turn = turn % partitions, turn + 1
        if index >= partitions:
            raise ValueError(f"there is no partition {index}; there are {partitions}")
        placed.setdefault(index, []).append(record)
    return placed


def murmur2(data: bytes) -> int:
    """The hash by which Kafka's producer chooses a key's partition, unsigned.

    (MurmurHash2 by Austin Appleby, in the public domain; Kafka: Utils.murmur2.)
    """
    multiplier, mask = 0x5BD1E995, 0xFFFFFFFF
    value = 0x9747B28C ^ len(data)
    whole = len(data) & ~3
    for position in range(0, whole, 4):
        word = int.from_bytes(data[position : position + 4], "little") * multiplier & mask
        word = (word ^ word >> 24) * multiplier & mask
        value = value * multiplier & mask ^ word
    if whole < len(data):
        value = (value ^ int.from_bytes(data[whole:], "little")) * multiplier & mask
    value = (value ^ value >> 13) * multiplier & mask
    return value ^ value >> 15


async def append(log: Log, records: list[NewRecord], now_ms: int) -> list[Record]:
    """Append records to a partition, in its topic's codec; what they are there. A checkpoint.

    Raises:
        ApiError: a batch was refused; those before it are in the log.

    Cancellation: the batches before are in the log.
    """
    await trio.lowlevel.checkpoint()
    stored = []
    for batch in _batches(records):
        rows = [
            (
                now_ms if each.timestamp is None else each.timestamp,
                each.key,
                each.value,
                each.headers,
            )
            for each in batch
        ]
        encoded = encode_batch(rows)
        if log.config.recompresses:
            encoded = await recompress(encoded, log, now_ms)
        appended = log.append(encoded, now_ms)
        stored += [
            Record(log.partition, offset, key, value, tuple(headers), timestamp)
            for offset, (timestamp, key, value, headers) in enumerate(rows, appended.first_offset)
        ]
    return stored


def _batches(records: list[NewRecord]) -> Iterable[list[NewRecord]]:
    batch: list[NewRecord] = []
    size = 0
    for record in records:
        size += len(record.key or b"") + len(record.value or b"")
        if batch and (len(batch) >= _BATCH_RECORDS_MAX or size > _BATCH_BYTES_MAX):
            yield batch
            batch, size = [], 0
        batch.append(record)
    if batch:
        yield batch


def records_in(log: Log) -> list[Record]:
    """Every record of a partition that a consumer can read now; transactions make no difference."""
    found = []
    offset = log.start_offset
    while offset < log.high_watermark:
        place = log.read(offset, _READ_BYTES).records
        data = place.file.read_at(place.offset, place.count)
        for position, header in iter_batches(data):
            if not header.is_control:
                found += [
                    Record(log.partition, at, key, value, tuple(headers), timestamp)
                    for at, timestamp, key, value, headers in decode_batch(data, position)
                    if at >= offset
                ]
            offset = header.last_offset + 1
    return found
