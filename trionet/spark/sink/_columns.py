"""Converts the Arrow batches of a sink into records for the producer. Imports pyarrow and numpy.

The conversion never works row by row. Many rows of one partition are encoded by column; fewer rows
are converted to lists, one per column, so that the producer can add them to batches that are not
full yet. A column of keys is also hashed in a single call: writing would take several times as long
if the producer had to find the partition of each record.
The result is the same as in :mod:`trionet.client.producer.batching._topic_queues`; each step of the
vectorized murmur2 mixes in the next four bytes of all keys that are long enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

import attrs
import numpy as np
import pyarrow as pa

from ...client.producer.batching._topic_queues import murmur2
from ...errors import LocalProtocolError, TrionetError
from ...protocol.records._types import EncodedRecords, Headers
from ...protocol.records.columnar._arrow_encoder import ArrowColumns, encode_groups
from ._schema import COLUMN_TYPES, SinkColumnsError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Hashes = NDArray[np.uint32]

_MULTIPLIER: Final = np.uint32(0x5BD1E995)
_SEED: Final = np.uint32(0x9747B28C)
_WORD_BYTES: Final = 4

#: Longer keys are hashed one by one: each word of the longest key costs a step for all keys.
_LENGTH_MAX: Final = 1024


def partitions_of(keys: Any, partitions: int) -> NDArray[np.int64]:
    """Return the partition of each key.

    Args:
        keys: an Arrow column of bytes or strings, without nulls.
        partitions: the number of partitions of the topic, at least 1.
    """
    starts, lengths, data = _spans(keys)
    hashes = _murmur2(np.where(lengths <= _LENGTH_MAX, lengths, 0), starts, data)
    for row in np.flatnonzero(lengths > _LENGTH_MAX).tolist():
        start = int(starts[row])
        hashes[row] = murmur2(data[start : start + int(lengths[row])].tobytes())
    return ((hashes & np.uint32(0x7FFF_FFFF)) % np.uint32(partitions)).astype(np.int64)


def _spans(column: Any) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8]]:
    """Return the start and length of each key, and the bytes of all keys."""
    is_large = pa.types.is_large_binary(column.type) or pa.types.is_large_string(column.type)
    _, offsets, data = column.buffers()
    every = np.frombuffer(offsets, np.int64 if is_large else np.int32)
    places = every[column.offset : column.offset + len(column) + 1].astype(np.int64)
    first, last = (int(places[0]), int(places[-1])) if len(places) else (0, 0)
    used = b"" if data is None else memoryview(data)[first:last]
    # The tail of a key is read as a whole word and masked, so the last key needs padding.
    padded = np.zeros(last - first + _WORD_BYTES, np.uint8)
    padded[: last - first] = np.frombuffer(used, np.uint8)
    return places[:-1] - first, np.diff(places), padded


def _murmur2(
    lengths: NDArray[np.int64], starts: NDArray[np.int64], data: NDArray[np.uint8]
) -> Hashes:
    # The little-endian word that starts at each byte.
    words: Hashes = np.ndarray((len(data) - _WORD_BYTES + 1,), "<u4", data, strides=(1,))
    hashes = _SEED ^ lengths.astype(np.uint32)
    last = int(lengths.max(initial=0)) // _WORD_BYTES
    for step in range(last):
        place = step * _WORD_BYTES
        has = lengths >= place + _WORD_BYTES
        if has.all():
            hashes = _mixed(hashes, words[starts + place])
        else:
            rows = np.flatnonzero(has)
            hashes[rows] = _mixed(hashes[rows], words[starts[rows] + place])
    rest = lengths % _WORD_BYTES
    rows = np.flatnonzero(rest)
    if len(rows):
        kept = (np.uint32(1) << (8 * rest[rows]).astype(np.uint32)) - np.uint32(1)
        tail = words[(starts + lengths - rest)[rows]] & kept
        hashes[rows] = (hashes[rows] ^ tail) * _MULTIPLIER
    hashes ^= hashes >> np.uint32(13)
    hashes *= _MULTIPLIER
    hashes ^= hashes >> np.uint32(15)
    return hashes


def _mixed(hashes: Hashes, words: Hashes) -> Hashes:
    words = words * _MULTIPLIER
    words ^= words >> np.uint32(24)
    words *= _MULTIPLIER
    return hashes * _MULTIPLIER ^ words


if TYPE_CHECKING:
    Numbers = np.ndarray[Any, np.dtype[np.int64]]

#: pa.RecordBatch and pa.Array; pyarrow has no type hints.
Batch: TypeAlias = Any
Column: TypeAlias = Any

#: The minimum number of rows per partition for grouping rows by the partition of their key: passing
#: a group to the producer costs as much as about twenty records.
ROWS_OF_PARTITION_MIN: Final = 32

_NO_NAME: Final = "a header has no name (key is null); set its key, or remove it"


class NullTopicError(TrionetError):
    """Raised when a row has no topic (the connector: KAFKA_NULL_TOPIC_IN_DATA)."""

    condition: ClassVar[str] = "KAFKA_NULL_TOPIC_IN_DATA"

    def __str__(self) -> str:
        return (
            f"[{self.condition}] null topic present in the data; set the topic option, or filter"
            " out the rows without a topic"
        )


#: The maximum size of what is encoded at once: Arrow's binary columns hold 2 GB, and those of Spark
#: more with ``spark.sql.execution.arrow.useLargeVarTypes``.
BATCH_BYTES_MAX: Final = 2**30

#: The minimum number of rows of a partition for encoding them here, as batches of their own.
ENCODED_ROWS_MIN: Final = 256


@attrs.frozen
class EncodedRows:
    """Rows of one topic, in order, as arguments for :meth:`.Producer._enqueue_encoded`.

    Attributes:
        topic: the topic of the rows.
        batches: the partition and the rows of each batch; None to choose a partition by load.
    """

    topic: str
    batches: list[tuple[int | None, EncodedRecords]]


@attrs.frozen
class Rows:
    """Rows of one topic, in order, as arguments for :meth:`.Producer.enqueue_batch`.

    Attributes:
        topic: the topic of the rows.
        partition: the partition; None to choose it by key or, for null keys, by load.
        values: the values; None for a null value.
        keys: the keys; None for the whole column if all are null.
        headers: the headers of each row; None for the whole column if no row has headers.
    """

    topic: str
    partition: int | None
    values: list[bytes | None]
    keys: list[bytes | None] | None
    headers: list[Headers] | None


def rows_of(
    batch: Batch,
    topic: str | None,
    key_partitions: Callable[[str], int],
    batch_bytes: int,
) -> Iterator[Rows | EncodedRows]:
    """Yield the rows of a batch by topic and partition, in order within each partition.

    Args:
        batch: a batch from Spark, with checked columns.
        topic: the topic of all rows, or None to use the ``topic`` column.
        key_partitions: returns the number of partitions over which a topic's keys are hashed, or 0
            to leave the choice to the producer.
        batch_bytes: the maximum size of a batch in bytes.

    Raises:
        NullTopicError: a row has no topic.
        SinkColumnsError: a partition is negative, or a header has no name.
    """
    if batch.nbytes > BATCH_BYTES_MAX and batch.num_rows > 1:
        for half in _halves(batch):
            yield from rows_of(half, topic, key_partitions, batch_bytes)
        return
    for name, columns in _of_topics(batch, topic):
        for numbers, places in _by_partition(columns.pop("partition", None)):
            rows = _take(columns, places)
            if numbers is None and not _is_all_null(rows.get("key")):
                numbers = _partitions_by_key(name, rows["key"], key_partitions)
                if numbers is None:
                    yield _rows(name, None, rows)
                    continue
            yield from _of_partitions(name, numbers, rows, batch_bytes)


def _halves(batch: Batch) -> tuple[Batch, Batch]:
    middle = batch.num_rows // 2
    return batch.slice(0, middle), batch.slice(middle)


def rows_by_topic(batch: Batch, topic: str | None) -> Iterator[Rows]:
    """Yield the rows of a batch by topic, whatever their partitions.

    Args:
        batch: see :func:`rows_of`.
        topic: see :func:`rows_of`.

    Raises:
        NullTopicError, SinkColumnsError: see :func:`rows_of`.
    """
    for name, columns in _of_topics(batch, topic):
        yield _rows(name, None, columns)


def _of_topics(batch: Batch, topic: str | None) -> Iterator[tuple[str, dict[str, Column]]]:
    """Yield each topic with the other columns of its rows."""
    columns = {name: batch.column(name) for name in COLUMN_TYPES if name in batch.schema.names}
    topics = columns.pop("topic", None)
    for name, places in _by_topic(topics, topic, batch.num_rows):
        yield name, dict(_take(columns, places))


def _by_topic(
    column: Column | None, topic: str | None, count: int
) -> Iterator[tuple[str, Numbers | None]]:
    """Yield each topic with the indices of its rows; None stands for all rows."""
    if not count:
        return
    if topic is not None or column is None:
        assert topic is not None  # see check_columns()
        yield topic, None
        return
    if column.null_count:
        raise NullTopicError
    coded = column.dictionary_encode()
    names: list[str] = coded.dictionary.to_pylist()
    if len(names) == 1:
        yield names[0], None
        return
    codes = coded.indices.to_numpy()
    for code, name in enumerate(names):
        yield name, np.flatnonzero(codes == code)


def _by_partition(column: Column | None) -> Iterator[tuple[Numbers | None, Numbers | None]]:
    """Yield the partitions of rows, and their indices; None stands for no partitions, or all rows.

    A row without a partition may be written to any partition. A batch that has rows with and
    without a partition is therefore split into runs in row order. Otherwise, a row could overtake
    another row of the same partition.
    """
    if column is None or column.null_count == len(column):
        yield None, None
        return
    numbers = column.cast(pa.int64()).fill_null(-1).to_numpy()
    if (numbers < 0).sum() > column.null_count:
        raise SinkColumnsError(
            f"partition {numbers[numbers < -1].min(initial=-1)} is not allowed; it must be 0 or"
            " more, or null"
        )
    if not column.null_count:
        yield numbers, None
        return
    starts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
    for start, stop in pairwise(starts):
        yield None if numbers[start] < 0 else numbers[start:stop], np.arange(start, stop)


def _partitions_by_key(
    topic: str, keys: Column, key_partitions: Callable[[str], int]
) -> Numbers | None:
    """Return the partition of each key; None to leave the choice to the producer.

    That is the case if some rows have no key, or if each partition has few rows, because a row
    without a key may share its partition with any other row.
    """
    # Looking up the number of partitions costs as much as some hundred rows: not worth it for a
    # batch with a few rows for each of many topics.
    is_small = keys.null_count or len(keys) < ROWS_OF_PARTITION_MIN
    partitions = 0 if is_small else key_partitions(topic)
    if not partitions or len(keys) < partitions * ROWS_OF_PARTITION_MIN:
        return None
    return np.zeros(len(keys), np.int64) if partitions == 1 else partitions_of(keys, partitions)


def _of_partitions(
    topic: str, numbers: Numbers | None, columns: Mapping[str, Column], batch_bytes: int
) -> Iterator[Rows | EncodedRows]:
    """Yield the rows of each partition; of those that have many, encoded."""
    many: list[tuple[int | None, Numbers]] = []
    for partition, places in _groups(numbers, len(columns["value"])):
        if len(places) < ENCODED_ROWS_MIN:
            yield _rows(topic, partition, _take(columns, places))
        else:
            many.append((partition, places))
    if many:
        yield _encoded(topic, many, columns, batch_bytes)


def _groups(numbers: Numbers | None, rows: int) -> list[tuple[int | None, Numbers]]:
    """Return each partition with the indices of its rows, in order."""
    if numbers is None or numbers.min() == numbers.max():
        return [(None if numbers is None else int(numbers[0]), np.arange(rows))]
    # Stable, to keep the order of rows; a radix sort, faster for a narrower type.
    narrow = numbers.astype(np.min_scalar_type(numbers.max()))
    order = narrow.argsort(kind="stable")
    ordered = narrow[order]
    starts = [0, *(np.flatnonzero(ordered[1:] != ordered[:-1]) + 1).tolist()]
    names = ordered[starts].tolist()
    return list(zip(names, np.split(order, starts[1:]), strict=True))


def _encoded(
    topic: str,
    groups: Sequence[tuple[int | None, Numbers]],
    columns: Mapping[str, Column],
    batch_bytes: int,
) -> EncodedRows:
    kept = {name: None if _is_all_null(each) else each for name, each in columns.items()}
    arrow = ArrowColumns(columns["value"], kept.get("key"), kept.get("headers"))
    order = np.concatenate([places for _, places in groups])
    counts = [len(places) for _, places in groups]
    try:
        batches = encode_groups(arrow, order, counts, batch_bytes)
        return EncodedRows(topic, [(groups[number][0], each) for number, each in batches])
    except LocalProtocolError:
        raise SinkColumnsError(_NO_NAME) from None


def _take(columns: Mapping[str, Column], places: Numbers | None) -> Mapping[str, Column]:
    if places is None:
        return columns
    indices = pa.array(places)
    return {name: column.take(indices) for name, column in columns.items()}


def _rows(topic: str, partition: int | None, columns: Mapping[str, Column]) -> Rows:
    return Rows(
        topic,
        partition,
        _bytes(columns["value"]),
        None if _is_all_null(columns.get("key")) else _bytes(columns["key"]),
        None if _is_all_null(columns.get("headers")) else _headers(columns["headers"]),
    )


def _is_all_null(column: Column | None) -> bool:
    return column is None or column.null_count == len(column)


def _bytes(column: Column) -> list[bytes | None]:
    """Convert a column to bytes; strings are already UTF-8, so only their type changes."""
    if pa.types.is_large_string(column.type):
        column = column.cast(pa.large_binary())
    elif pa.types.is_string(column.type):
        column = column.cast(pa.binary())
    values: list[bytes | None] = column.to_pylist()
    return values


def _headers(column: Column) -> list[Headers]:
    """Return the headers of each row; an empty list for null headers."""
    names, contents = column.flatten().flatten()  # without the elements under nulls
    if names.null_count:
        raise SinkColumnsError(_NO_NAME)
    pairs: Sequence[tuple[str, bytes | None]]
    pairs = list(zip(names.to_pylist(), contents.to_pylist(), strict=True))
    lengths = column.value_lengths().fill_null(0).to_numpy()
    stops = np.cumsum(lengths).tolist()
    starts = [0, *stops[:-1]]
    return [pairs[start:stop] for start, stop in zip(starts, stops, strict=True)]
