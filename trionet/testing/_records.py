"""Records as plain values, for reading topics and appending to them, and files of records.

A record to append is an object of any of ``partition``, ``key``, ``value``, ``headers`` and
``timestamp`` (ms since the epoch), in Python as in each line of a JSON Lines file, where the object
has a ``topic``, too. A key or value is a string, null, other JSON, which is stored as JSON text, or
``{"base64": "..."}`` for bytes that are not text. Headers are an object or a list of pairs. The
output of ``kcat -C -J`` is also accepted.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import trio

from ..broker.log import Log
from ..broker.log.validation._recompression import recompress
from ..protocol.records._batch import iter_batches
from ..protocol.records._records import decode_batch, encode_batch

# pytest leaves the frames of this module out of its reports.
__tracebackhide__ = True

# How many bytes of a log are read at once.
_READ_BYTES: Final = 1024 * 1024
# The most records, and roughly the most bytes, of a batch; a larger record gets its own batch.
_BATCH_RECORDS_MAX: Final = 500
_BATCH_BYTES_MAX: Final = 256 * 1024

Text = str | bytes | None
"""A key or a value; a str is encoded as UTF-8, None is null."""

Json = str | int | float | dict[str, Any] | list[Any] | None
"""A key or a value; what is not a str is stored as JSON text, but ``{"base64": "..."}`` as the
bytes that it encodes."""

_FIELDS = ("partition", "key", "value", "headers", "timestamp")
# kcat's names of fields, and fields that are ignored.
_KCAT_NAMES = {"payload": "value", "ts": "timestamp"}
_KCAT_EXTRA = ("offset", "tstype", "broker", "key_schema_id", "value_schema_id")


class Record(NamedTuple):
    """A record of a topic; equal to a tuple of the same values.

    Attributes:
        partition: the partition of the record.
        offset: the offset in the partition.
        key: the key; None for null.
        value: the value; None for null, which deletes the key in a compacted topic.
        headers: the names and values of the headers.
        timestamp: the timestamp, in ms since the epoch.
    """

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: int


class NewRecord(NamedTuple):
    """A record to append; if the partition or timestamp is None, it is chosen on append."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int | None = None
    timestamp: int | None = None


Seed = Text | tuple[Text | Json, Text | Json] | Mapping[str, object] | Record
"""A record given by a test: a value; a key and a value; or a dict with any of ``partition``,
``key``, ``value``, ``headers`` and ``timestamp``. Keys and values in a tuple or a dict may be
JSON."""


def new_record(seed: Seed, topic: str) -> NewRecord:
    """Convert a record given by a test for a topic to a :class:`NewRecord`.

    Raises:
        TypeError: the value is not a record, or a field has the wrong type.
        ValueError: a field is unknown, has an invalid value, or names another topic.
    """
    if isinstance(seed, Record):
        return NewRecord(seed.key, seed.value, seed.headers, seed.partition, seed.timestamp)
    if seed is None or isinstance(seed, (str, bytes)):
        return NewRecord(None, _bytes(seed, "value"))
    if isinstance(seed, tuple) and len(seed) == 2:
        return NewRecord(_bytes(seed[0], "key"), _bytes(seed[1], "value"))
    if isinstance(seed, Mapping):
        named, record = _from_fields(seed)
        if named not in (None, topic):
            raise ValueError(f"the record is for topic {named!r}, not {topic!r}: {seed!r}")
        return record
    raise TypeError(
        f"invalid record {seed!r}; expected a value, a tuple of a key and a value, or a dict of"
        f" {', '.join(_FIELDS)}; a value alone is str, bytes or None"
    )


def _from_fields(fields: Mapping[str, object]) -> tuple[object, NewRecord]:
    """Return the topic, None if there is none, and the record."""
    named = {_KCAT_NAMES.get(name, name): value for name, value in fields.items()}
    topic = named.pop("topic", None)
    for name in _KCAT_EXTRA:
        named.pop(name, None)
    if unknown := named.keys() - set(_FIELDS):
        raise ValueError(
            f"unknown fields {sorted(map(str, unknown))}; allowed: {', '.join(_FIELDS)}; a dict is"
            ' stored as JSON where it is the value, as in {"value": {...}}'
        )
    return topic, NewRecord(
        _bytes(named.get("key"), "key"),
        _bytes(named.get("value"), "value"),
        _headers(named.get("headers")),
        _number(named.get("partition"), "partition"),
        _number(named.get("timestamp"), "timestamp"),
    )


def _bytes(value: object, field: str) -> bytes | None:
    if isinstance(value, str):
        return value.encode()
    if value is None or isinstance(value, bytes):
        return value
    if not isinstance(value, int | float | list | dict):
        raise TypeError(f"invalid {field} {value!r}; expected str, bytes, None or JSON")
    try:
        if isinstance(value, dict) and value.keys() == {"base64"}:
            return base64.b64decode(value["base64"], validate=True)
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
    except (TypeError, ValueError) as error:
        raise ValueError(f"invalid {field} {value!r}: {error}") from error


def _number(value: object, field: str) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    raise TypeError(f"invalid {field} {value!r}; expected an integer of 0 or more, or None")


def _headers(value: object) -> tuple[tuple[str, bytes | None], ...]:
    pairs = value.items() if isinstance(value, Mapping) else value or ()
    if isinstance(pairs, list) and all(isinstance(each, str) for each in pairs):
        if len(pairs) % 2:
            raise ValueError(f"invalid headers {pairs!r}; expected names and values in turn")
        pairs = zip(pairs[::2], pairs[1::2], strict=True)  # as kcat prints them
    headers = []
    for pair in pairs if isinstance(pairs, Iterable) else (pairs,):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not isinstance(pair[0], str):
            raise TypeError(f"invalid header {pair!r}; expected a name (str) and a value")
        headers.append((pair[0], _bytes(pair[1], "header")))
    return tuple(headers)


def check_keys(topic: str, records: Iterable[NewRecord]) -> None:
    """Check that all records for a compacted topic have a key.

    Raises:
        ValueError: a record has no key.
    """
    for number, record in enumerate(records):
        if record.key is None:
            raise ValueError(
                f"record {number} has no key, but topic {topic} is compacted (cleanup.policy);"
                " give every record a key"
            )


def assign_partitions(records: Iterable[NewRecord], partitions: int) -> dict[int, list[NewRecord]]:
    """Assign records to partitions.

    A record's key determines its partition, as in Kafka's own producer. Records without a key are
    distributed round-robin.

    Raises:
        ValueError: the partition of a record does not exist.
    """
    by_partition: dict[int, list[NewRecord]] = {}
    turn = 0
    for record in records:
        index = record.partition
        if index is None and record.key is not None:
            index = (murmur2(record.key) & 0x7FFFFFFF) % partitions
        elif index is None:
            index, turn = turn % partitions, turn + 1
        if index >= partitions:
            raise ValueError(
                f"partition {index} does not exist; number of partitions: {partitions}"
            )
        by_partition.setdefault(index, []).append(record)
    return by_partition


def murmur2(data: bytes) -> int:
    """Return the unsigned hash with which Kafka's producer maps a key to a partition.

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
    """Append records to a partition, compressed with the topic's codec. Returns the records.

    Raises:
        ApiError: a batch was rejected; the batches before it were appended.

    Cancellation: some of the batches may have been appended.
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
            encoded = await recompress(encoded, log.config, log.directory, now_ms)
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
    """Return the records below the high watermark, including those of uncommitted transactions."""
    found = []
    offset = log.start_offset
    while offset < log.high_watermark:
        found_range = log.read(offset, _READ_BYTES).records
        data = found_range.file.read_at(found_range.offset, found_range.count)
        for position, header in iter_batches(data):
            if not header.is_control:
                found += [
                    Record(log.partition, at, key, value, tuple(headers), timestamp)
                    for at, timestamp, key, value, headers in decode_batch(data, position)
                    if at >= offset
                ]
            offset = header.last_offset + 1
    return found


def read_records(path: str | os.PathLike[str]) -> dict[str, list[NewRecord]]:
    """Return the records in a file, grouped by topic.

    Raises:
        OSError: the file cannot be read.
        ValueError: a line is invalid; the message contains the line number and the reason.
    """
    found: dict[str, list[NewRecord]] = {}
    for number, line in enumerate(Path(path).read_text("utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            topic, record = _record(json.loads(line))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{os.fspath(path)}, line {number}: {error}") from error
        found.setdefault(topic, []).append(record)
    return found


def _record(fields: object) -> tuple[str, NewRecord]:
    if not isinstance(fields, dict):
        raise TypeError("not a JSON object")
    topic, record = _from_fields(fields)
    if not isinstance(topic, str):
        raise TypeError("topic is missing or not a string")
    return topic, record
