"""The rows that a sink is given, as the columns that a producer takes. Imports pyarrow and numpy.

Nothing is done row by row: each column becomes a list in one call, or, where rows go to several
topics or partitions, one for each of these. Keys are hashed here, too, all at once: a producer that
has to find the partition of each record takes several times as long for all the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs
import numpy as np
import pyarrow as pa

from ...protocol.records._types import Headers
from ..offsets._errors import NullTopicError, SinkColumnsError
from ._key_partitions import partitions_of

if TYPE_CHECKING:
    Numbers = np.ndarray[Any, np.dtype[np.int64]]

#: pa.RecordBatch and pa.Array, which have no types.
Batch: TypeAlias = Any
Column: TypeAlias = Any

#: Rows are put in order of their keys' partitions from so many for each on: what goes to one
#: partition costs as much as some twenty records, however few there are.
ROWS_OF_PARTITION_MIN: Final = 32

HEADERS_TYPE: Final = "array<struct<key:string,value:binary>>"
#: What each column may be; others are not looked at.
_TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    "topic": ("string",),
    "key": ("string", "binary"),
    "value": ("string", "binary"),
    "headers": (HEADERS_TYPE,),
    "partition": ("int",),
}


@attrs.frozen
class Rows:
    """Rows of one topic, in their order; the arguments of :meth:`.Producer.enqueue_batch`.

    Attributes:
        topic: where they go.
        partition: its number; None lets the keys decide, or without a key the load.
        values: None for null.
        keys: None for null; without, none has a key.
        headers: names and values of each; without, none has any.
    """

    topic: str
    partition: int | None
    values: list[bytes | None]
    keys: list[bytes | None] | None
    headers: list[Headers] | None


def check_columns(types: Mapping[str, str], topic: str | None) -> None:
    """Look at the columns before anything is written.

    Args:
        types: the names of all columns, and their types in Spark's words.
        topic: the option.

    Raises:
        SinkColumnsError: one is missing, or of another type than it has to be; says which.
    """
    if topic is None and "topic" not in types:
        raise SinkColumnsError(
            "topic option required when no 'topic' attribute is present; use the option topic, or"
            " add a column topic"
        )
    if "value" not in types:
        raise SinkColumnsError("required attribute 'value' not found; add a column value")
    for name, allowed in _TYPES.items():
        if name in types and types[name] not in allowed and not (name == "topic" and topic):
            raise SinkColumnsError(
                f"{name} attribute unsupported type {types[name]}. {name} must be a(n)"
                f" {' or '.join(allowed)}"
            )


def rows_of(
    batch: Batch, topic: str | None, key_partitions: Callable[[str], int]
) -> Iterator[Rows]:
    """The rows of a batch by topic and partition; those that may meet in one keep their order.

    Args:
        batch: as Spark hands it over; its columns were checked.
        topic: where all rows go; None: the column ``topic`` says it.
        key_partitions: how many partitions the keys of a topic's rows choose from; 0 for none.

    Raises:
        NullTopicError: a row has no topic.
        SinkColumnsError: a partition is negative, or a header has no name.
    """
    columns = {name: batch.column(name) for name in _TYPES if name in batch.schema.names}
    partitions = columns.pop("partition", None)
    topics = columns.pop("topic", None)
    for name, places in _by_topic(topics, topic, batch.num_rows):
        of_topic = _taken(columns, places)
        its = None if partitions is None else _taken({"": partitions}, places)[""]
        for partition, part in _by_partition(its):
            rows = _taken(of_topic, part)
            if partition is None and not _is_without(rows.get("key")):
                yield from _by_key(name, rows, key_partitions)
            else:
                yield _rows(name, partition, rows)


def _by_topic(
    column: Column | None, topic: str | None, count: int
) -> Iterator[tuple[str, Numbers | None]]:
    """Topics and which rows are theirs; None for all."""
    if not count:
        return
    if topic is not None or column is None:
        assert topic is not None  # check_columns() has seen to it
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


def _by_partition(column: Column | None) -> Iterator[tuple[int | None, Numbers | None]]:
    """Partitions of a topic and which rows are theirs; None for all.

    Rows without one may get any. Where there are both, they go in runs as they come, or a row would
    be written before another one of its partition.
    """
    if column is None or column.null_count == len(column):
        yield None, None
        return
    numbers = column.cast(pa.int64()).fill_null(-1).to_numpy()
    if (numbers < 0).sum() > column.null_count:
        raise SinkColumnsError(
            f"partition {numbers[numbers < -1].min(initial=-1)} is not allowed; allowed: 0 and"
            " more, or null"
        )
    if not column.null_count:
        different = np.unique(numbers)
        for number in different.tolist():
            yield number, None if len(different) == 1 else np.flatnonzero(numbers == number)
        return
    starts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
    for start, stop in pairwise(starts):
        number = int(numbers[start])
        yield None if number < 0 else number, np.arange(start, stop)


def _by_key(
    topic: str, columns: Mapping[str, Column], key_partitions: Callable[[str], int]
) -> Iterator[Rows]:
    """Rows that go where their keys say.

    Those without a key may come to lie beside any other: where there are some, the producer finds
    the partitions, and so it does where there are few rows for each.
    """
    keys = columns["key"]
    # To ask takes as long as some hundred rows: not for each of many topics that have a few.
    is_small = keys.null_count or len(keys) < ROWS_OF_PARTITION_MIN
    partitions = 0 if is_small else key_partitions(topic)
    if not partitions or len(keys) < partitions * ROWS_OF_PARTITION_MIN:
        yield _rows(topic, None, columns)
        return
    if partitions == 1:
        yield _rows(topic, 0, columns)
        return
    numbers = partitions_of(keys, partitions)
    # Stable, and the faster the fewer bits a number has.
    order = numbers.astype(np.min_scalar_type(partitions)).argsort(kind="stable")
    ordered = _taken(columns, order)
    starts = np.searchsorted(numbers[order], np.arange(partitions + 1)).tolist()
    for number, (start, stop) in enumerate(pairwise(starts)):
        if stop > start:
            part = {name: column.slice(start, stop - start) for name, column in ordered.items()}
            yield _rows(topic, number, part)


def _taken(columns: Mapping[str, Column], places: Numbers | None) -> Mapping[str, Column]:
    if places is None:
        return columns
    indices = pa.array(places)
    return {name: column.take(indices) for name, column in columns.items()}


def _rows(topic: str, partition: int | None, columns: Mapping[str, Column]) -> Rows:
    return Rows(
        topic,
        partition,
        _bytes(columns["value"]),
        None if _is_without(columns.get("key")) else _bytes(columns["key"]),
        None if _is_without(columns.get("headers")) else _headers(columns["headers"]),
    )


def _is_without(column: Column | None) -> bool:
    return column is None or column.null_count == len(column)


def _bytes(column: Column) -> list[bytes | None]:
    """Texts are UTF-8 already: only what they are called changes."""
    if pa.types.is_large_string(column.type):
        column = column.cast(pa.large_binary())
    elif pa.types.is_string(column.type):
        column = column.cast(pa.binary())
    values: list[bytes | None] = column.to_pylist()
    return values


def _headers(column: Column) -> list[Headers]:
    """The headers of each row; none where they are null."""
    structs = column.flatten()  # less what lies behind a null
    names, contents = structs.flatten()
    if names.null_count:
        raise SinkColumnsError("a header has no name (key is null); give one, or leave it out")
    pairs: Sequence[tuple[str, bytes | None]]
    pairs = list(zip(names.to_pylist(), contents.to_pylist(), strict=True))
    lengths = column.value_lengths().fill_null(0).to_numpy()
    stops = np.cumsum(lengths).tolist()
    starts = [0, *stops[:-1]]
    return [pairs[start:stop] for start, stop in zip(starts, stops, strict=True)]
