"""The rows of a sink as columns for a producer.

The partitions of a column of keys are those that a producer finds for each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.encoded_records import rows_of as records_of
from trionet.client.producer.batching._topic_queues import partition_of
from trionet.protocol.records.columnar._arrow_columns import HEADERS
from trionet.spark.sink import _columns
from trionet.spark.sink._columns import (
    ENCODED_ROWS_MIN,
    ROWS_OF_PARTITION_MIN,
    Batch,
    EncodedRows,
    NullTopicError,
    Rows,
    partitions_of,
    rows_of,
)
from trionet.spark.sink._schema import HEADERS_TYPE, SinkColumnsError, check_columns

Row = tuple[str, int | None, bytes]

BATCH_BYTES = 16 * 1024


def of_none(topic: str) -> int:
    """The number of partitions of topics whose keys choose none."""
    return 0


def parts_of(
    batch: Batch,
    topic: str | None = "t",
    key_partitions: Callable[[str], int] = of_none,
) -> list[Rows]:
    """The parts of a batch; those that are encoded are decoded."""
    parts: list[Rows] = []
    for part in rows_of(batch, topic, key_partitions, BATCH_BYTES):
        parts += [part] if isinstance(part, Rows) else decoded(part)
    return parts


def decoded(part: EncodedRows) -> list[Rows]:
    """The rows of each partition."""
    assert all(len(each.body) <= BATCH_BYTES for _, each in part.batches)
    found: list[Rows] = []
    for partition, batches in groupby(part.batches, itemgetter(0)):
        _, _, keys, values, headers = zip(*records_of(each for _, each in batches), strict=True)
        is_keyed, has_headers = any(key is not None for key in keys), any(headers)
        found.append(
            Rows(
                part.topic,
                partition,
                [*values],
                [*keys] if is_keyed else None,
                [*map(list, headers)] if has_headers else None,
            )
        )
    return found


def batch_of(rows: Sequence[Row]) -> Batch:
    return pa.record_batch(
        {
            "topic": pa.array([topic for topic, _, _ in rows], pa.string()),
            "partition": pa.array([partition for _, partition, _ in rows], pa.int32()),
            "value": pa.array([value for _, _, value in rows], pa.binary()),
        }
    )


@pytest.mark.parametrize("binary", [pa.binary(), pa.large_binary()])
@pytest.mark.parametrize("string", [pa.string(), pa.large_string()])
def test_texts_are_written_as_utf_8(string: Any, binary: Any) -> None:
    batch = pa.record_batch(
        {"key": pa.array(["k", "é", None], string), "value": pa.array([b"1", None, b""], binary)}
    )

    [rows] = parts_of(batch)

    assert Rows("t", None, [b"1", None, b""], [b"k", "é".encode(), None], None) == rows


def test_a_column_that_is_null_is_left_out() -> None:
    batch = pa.record_batch(
        {
            "topic": pa.array([None, None], pa.string()),
            "key": pa.array([None, None], pa.binary()),
            "value": ["1", "2"],
            "headers": pa.array([None, None], HEADERS),
            "partition": pa.array([None, None], pa.int32()),
            "more": [1.5, 2.5],
        }
    )

    assert [Rows("t", None, [b"1", b"2"], None, None)] == parts_of(batch)


def test_each_row_has_its_headers() -> None:
    headers = [
        None,
        [],
        [{"key": "a", "value": b"1"}, {"key": "a", "value": None}],
        None,
        [{"key": "b", "value": b""}],
    ]
    batch = pa.record_batch({"value": ["x"] * 5, "headers": pa.array(headers, HEADERS)})
    expected = [[], [], [("a", b"1"), ("a", None)], [], [("b", b"")]]

    for start in range(len(expected)):  # also where a batch is a part of another one
        [rows] = parts_of(batch.slice(start))
        assert expected[start:] == (rows.headers or [[] for _ in rows.values])


@pytest.mark.parametrize("rows", [1, 2 * ENCODED_ROWS_MIN], ids=["few", "encoded"])
def test_a_header_without_a_name_is_refused(rows: int) -> None:
    headers = pa.array([[{"key": None, "value": b"1"}]] * rows, HEADERS)

    with pytest.raises(SinkColumnsError, match="a header has no name"):
        parts_of(pa.record_batch({"value": ["x"] * rows, "headers": headers}))


@pytest.mark.parametrize("rows", [1, 2 * ENCODED_ROWS_MIN], ids=["few", "encoded"])
def test_a_header_that_is_null_is_refused(rows: int) -> None:
    headers = pa.array([[None]] * rows, HEADERS)

    with pytest.raises(SinkColumnsError, match="a header has no name"):
        parts_of(pa.record_batch({"value": ["x"] * rows, "headers": headers}))


def test_a_row_without_a_topic_is_refused() -> None:
    with pytest.raises(NullTopicError, match=r"\[KAFKA_NULL_TOPIC_IN_DATA\] null topic present"):
        parts_of(pa.record_batch({"topic": ["t", None], "value": ["1", "2"]}), None)


@pytest.mark.parametrize("partitions", [[0, -1], [None, -7]])
def test_a_partition_is_not_negative(partitions: list[int | None]) -> None:
    batch = batch_of([("t", partition, b"") for partition in partitions])

    with pytest.raises(SinkColumnsError, match=f"partition {partitions[1]} is not allowed"):
        parts_of(batch, None)


def test_of_no_rows_there_is_nothing() -> None:
    assert [] == parts_of(batch_of([]))


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from([None, 0, 1, 2]))),
    st.sampled_from([None, "t"]),
)
def test_every_row_goes_where_it_says_and_keeps_its_order(
    places: list[tuple[str, int | None]], topic: str | None
) -> None:
    rows = [(name, partition, b"%d" % number) for number, (name, partition) in enumerate(places)]
    taken = [
        (part.topic, part.partition, value)
        for part in parts_of(batch_of(rows), topic)
        for value in part.values
    ]
    wanted = [(topic or name, partition, value) for name, partition, value in rows]

    assert sorted(taken, key=str) == sorted(wanted, key=str)
    for name in {name for name, _, _ in wanted}:
        of_topic = [row for row in wanted if row[0] == name]
        its = [row for row in taken if row[0] == name]
        if any(row[1] is None for row in of_topic):  # any of these may get any partition
            assert of_topic == its or all(row[1] is None for row in of_topic)
        for partition in (0, 1, 2):
            assert [row for row in of_topic if row[1] == partition] == [
                row for row in its if row[1] == partition
            ]


@example([str(number % 41) for number in range(300)], 3, 7)
@given(
    st.lists(st.integers(0, 40).map(str), max_size=300),
    st.sampled_from([0, 1, 2, 3]),
    st.integers(0, 20),
)
def test_rows_are_put_in_order_of_their_keys_partitions(
    names: list[str], partitions: int, start: int
) -> None:
    """As the producer would send them; few are left to it, and those of a key keep their order."""
    values = [b"%d" % number for number in range(len(names))]
    batch = pa.record_batch({"key": pa.array(names, pa.string()), "value": values}).slice(start)
    rows = [*zip(names, values, strict=True)][start:]

    parts = parts_of(batch, "t", lambda _: partitions)

    found: dict[int, list[tuple[bytes | None, bytes | None]]] = {}
    is_grouped = 0 < partitions * ROWS_OF_PARTITION_MIN <= len(rows)
    for part in parts:
        assert (part.partition is not None) is is_grouped
        for key, value in zip(part.keys or (), part.values, strict=True):
            number = partition_of(key or b"", partitions or 1)
            assert part.partition in (None, number)
            found.setdefault(number, []).append((key, value))
    wanted: dict[int, list[tuple[bytes | None, bytes | None]]] = {}
    for name, value in rows:
        key = name.encode()
        wanted.setdefault(partition_of(key, partitions or 1), []).append((key, value))
    assert wanted == found


def test_rows_some_of_which_have_no_key_are_left_to_the_producer() -> None:
    """One without may go where one with a key goes, and is not to change places with it."""
    keys = pa.array([b"k", None] * 500)

    [rows] = parts_of(pa.record_batch({"key": keys, "value": ["x"] * 1000}), "t", pytest.fail)

    assert rows.partition is None
    assert [b"k", None] == (rows.keys or [])[:2]


def test_no_broker_is_asked_for_the_partitions_of_few_rows() -> None:
    """Of each topic, of which a batch may have a thousand."""
    names = [f"t{number % 3}" for number in range(3 * (ROWS_OF_PARTITION_MIN - 1))]
    columns = {"topic": names, "key": [b"k"] * len(names), "value": ["x"] * len(names)}

    parts = parts_of(pa.record_batch(columns), None, pytest.fail)

    assert [("t0", None), ("t1", None), ("t2", None)] == [(p.topic, p.partition) for p in parts]


def test_rows_that_name_their_partition_are_not_asked_for_their_keys() -> None:
    columns = {"key": [b"k"] * 100, "value": ["x"] * 100, "partition": pa.array([1] * 100)}

    [rows] = parts_of(pa.record_batch(columns), "t", pytest.fail)

    assert 1 == rows.partition


@pytest.mark.parametrize("partitions", [None, [2] * 1000])
@pytest.mark.parametrize("with_keys", [False, True])
@pytest.mark.parametrize("with_headers", [False, True])
def test_many_rows_of_a_partition_are_encoded(
    with_headers: bool, with_keys: bool, partitions: list[int] | None
) -> None:
    headers = [[{"key": "h", "value": b"%d" % number}] for number in range(1000)]
    keys = [b"%d" % number for number in range(1000)]
    columns = {
        "value": [b"x" * number for number in range(1000)],
        "key": pa.array(keys if with_keys else [None] * 1000, pa.binary()),
        "headers": pa.array(headers if with_headers else [None] * 1000, HEADERS),
    }
    if partitions is not None:
        columns["partition"] = pa.array(partitions, pa.int32())

    [part] = rows_of(pa.record_batch(columns), "t", lambda _: 1, BATCH_BYTES)

    assert isinstance(part, EncodedRows)
    assert len(part.batches) > 1000 * 500 // BATCH_BYTES
    [rows] = decoded(part)
    assert columns["value"] == rows.values
    assert (keys if with_keys else None) == rows.keys
    wanted = [[("h", each)] for each in keys]
    assert (wanted if with_headers else None) == rows.headers
    assert (2 if partitions else 0 if with_keys else None) == rows.partition


def test_rows_of_many_topics_are_few_parts() -> None:
    rows: list[Row] = [(f"t{number % 3}", number % 2, b"%d" % number) for number in range(600)]

    assert 6 == len(parts_of(batch_of(rows), None))


@pytest.mark.parametrize(
    ("types", "topic"),
    [
        ({"value": "string"}, "t"),
        ({"value": "binary", "topic": "string"}, None),
        ({"value": "binary", "topic": "int"}, "t"),
        (
            {
                "topic": "string",
                "key": "binary",
                "value": "string",
                "headers": HEADERS_TYPE,
                "partition": "int",
                "timestamp": "timestamp",
                "more": "map<int,int>",
            },
            None,
        ),
    ],
)
def test_columns_are_taken(types: dict[str, str], topic: str | None) -> None:
    check_columns(types, topic)


_PLAIN = {"topic": "string", "value": "string"}


@pytest.mark.parametrize(
    ("types", "message"),
    [
        ({"key": "string", "value": "string"}, "topic option required when no 'topic' attribute"),
        ({"topic": "string", "key": "string"}, "'value' not found; add a value column"),
        (_PLAIN | {"topic": "int"}, "unsupported type int. topic must be a(n) string"),
        (_PLAIN | {"value": "int"}, "value must be a(n) string or binary"),
        (_PLAIN | {"key": "int"}, "key must be a(n) string or binary"),
        (_PLAIN | {"partition": "string"}, "partition must be a(n) int"),
        (
            _PLAIN | {"headers": "array<struct<key:binary,value:binary>>"},
            "headers must be a(n) array<struct<key:string,value:binary>>",
        ),
    ],
)
def test_columns_are_refused(types: dict[str, str], message: str) -> None:
    with pytest.raises(SinkColumnsError) as caught:
        check_columns(types, None)

    assert message in str(caught.value)


KEYS = st.lists(st.one_of(st.binary(max_size=20), st.binary(min_size=1000, max_size=1100)))


@given(KEYS, st.integers(1, 1000), st.integers(0, 3), st.sampled_from(["binary", "large_binary"]))
def test_each_key_has_the_partition_that_a_producer_finds(
    keys: list[bytes], partitions: int, start: int, kind: str
) -> None:
    """Of every length, also beyond what is hashed side by side, and in a part of a column."""
    column = pa.array(keys, getattr(pa, kind)()).slice(start)

    found = partitions_of(column, partitions).tolist()

    assert [partition_of(key, partitions) for key in keys[start:]] == found


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_texts_are_hashed_as_utf_8(kind: Any) -> None:
    texts = ["", "é", "key", "łódź and more"]

    found = partitions_of(pa.array(texts, kind), 7).tolist()

    assert [partition_of(text.encode(), 7) for text in texts] == found


def test_more_than_arrow_can_hold_in_a_column_is_encoded_in_halves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of 2 GB; what Spark passes on may be larger."""
    rows: list[Row] = [("t", None, bytes([n % 256]) * 100) for n in range(4 * ENCODED_ROWS_MIN)]
    batch = batch_of(rows)
    monkeypatch.setattr(_columns, "BATCH_BYTES_MAX", batch.nbytes // 2)

    parts = list(rows_of(batch, None, of_none, BATCH_BYTES))

    assert 2 == len(parts)
    assert [value for _, _, value in rows] == [
        value
        for part in parts
        if isinstance(part, EncodedRows)
        for rows in decoded(part)
        for value in rows.values
    ]
