"""Records as plain values: what tests write for them, and where they go.

Files of JSON lines with records.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import trionet
from trionet import ApiError
from trionet.testing import Record, ThreadedBroker
from trionet.testing._records import NewRecord, assign_partitions, murmur2, new_record, read_records


@pytest.fixture
def broker() -> Iterator[ThreadedBroker]:
    with trionet.testing.broker(topics={"t": 3}) as running:
        yield running


@pytest.mark.parametrize(
    ("seed", "record"),
    [
        ("v", NewRecord(None, b"v")),
        (b"v", NewRecord(None, b"v")),
        (None, NewRecord(None, None)),
        (("k", "v"), NewRecord(b"k", b"v")),
        ((b"k", None), NewRecord(b"k", None)),
        ({"key": "k", "partition": 2}, NewRecord(b"k", None, (), 2)),
        (
            {"value": "v", "headers": {"a": "1", "b": None}, "timestamp": 7},
            NewRecord(None, b"v", (("a", b"1"), ("b", None)), None, 7),
        ),
        ({"headers": [("a", b"1"), ("a", "2")]}, NewRecord(None, None, (("a", b"1"), ("a", b"2")))),
        (Record(1, 9, b"k", b"v", (), 5), NewRecord(b"k", b"v", (), 1, 5)),
        (("k", {"a": 1}), NewRecord(b"k", b'{"a":1}')),
        ({"topic": "t", "value": [1, True]}, NewRecord(None, b"[1,true]")),
    ],
    ids=str,
)
def test_what_a_test_may_write_for_a_record(seed: Any, record: NewRecord) -> None:
    assert record == new_record(seed, "t")


@pytest.mark.parametrize(
    ("seed", "error"),
    [
        (7, TypeError),
        (("a", "b", "c"), TypeError),
        (["a", "b"], TypeError),
        (("a", {1, 2}), TypeError),
        ({"value": {"a": object()}}, ValueError),
        ({"value": {"base64": "?"}}, ValueError),
        ({"valu": "v"}, ValueError),
        ({"topic": "u", "value": "v"}, ValueError),
        ({"partition": -1}, TypeError),
        ({"timestamp": "now"}, TypeError),
        ({"headers": {"a": {1}}}, TypeError),
        ({"headers": ["a"]}, ValueError),
        ({"headers": 7}, TypeError),
    ],
    ids=str,
)
def test_what_is_no_record_is_refused(seed: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"allowed|expected|invalid value|the record is for topic 'u'"):
        new_record(seed, "t")


def test_a_value_that_looks_like_fields_is_told_where_it_goes() -> None:
    with pytest.raises(ValueError, match=r"unknown fields \['id', 'item'\]; .*\{\"value\": \{"):
        new_record({"id": 1, "item": "coffee"}, "t")


# Kafka's own: UtilsTest.testMurmur2.
@pytest.mark.parametrize(
    ("key", "hash"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_keys_are_hashed_as_kafkas_producer_does(key: bytes, hash: int) -> None:
    assert hash % 2**32 == murmur2(key)


@given(st.lists(st.binary(max_size=9) | st.none()), st.integers(1, 5))
def test_each_record_has_one_place(keys: list[bytes | None], partitions: int) -> None:
    records = [NewRecord(key, str(number).encode()) for number, key in enumerate(keys)]

    placed = assign_partitions(records, partitions)

    assert sorted(records, key=str) == sorted(
        (r for each in placed.values() for r in each), key=str
    )
    assert placed.keys() <= set(range(partitions))
    of_key = {
        key: {index for index, each in placed.items() for r in each if r.key == key}
        for key in keys
        if key is not None
    }
    assert all(len(indexes) == 1 for indexes in of_key.values())


def test_what_is_seeded_is_there(broker: ThreadedBroker) -> None:
    stored = broker.seed(
        "t",
        [
            {"partition": 0, "key": "k", "value": "a", "headers": {"h": "1"}, "timestamp": 1000},
            {"partition": 2, "value": None, "timestamp": 2000},
            {"partition": 0, "value": b"\xff", "timestamp": 3000},
        ],
    )

    expected = [
        (0, 0, b"k", b"a", (("h", b"1"),), 1000),
        (0, 1, None, b"\xff", (), 3000),
        (2, 0, None, None, (), 2000),
    ]
    assert expected == stored
    assert expected == broker.records("t")
    assert expected[:2] == broker.records("t", 0)
    assert [b"a", b"\xff", None] == broker.values("t")


def test_records_without_keys_take_turns(broker: ThreadedBroker) -> None:
    broker.seed("t", ["a", "b", "c", "d"])

    assert [(0, b"a"), (0, b"d"), (1, b"b"), (2, b"c")] == [
        (record.partition, record.value) for record in broker.records("t")
    ]


def test_a_topic_that_is_not_there_is_made(broker: ThreadedBroker) -> None:
    broker.seed("new", ["a"])

    assert {"t": 3, "new": 1} == broker.topics()


def test_many_records_are_many_batches_and_all_there(broker: ThreadedBroker) -> None:
    values = [b"%d" % number * 300 for number in range(3000)]

    broker.seed("t", [{"partition": 1, "value": value} for value in values])

    assert values == broker.values("t", 1)


@pytest.mark.parametrize("wrong", [7, {"partition": 3, "value": "b"}], ids=str)
def test_nothing_is_seeded_if_one_of_them_is_wrong(broker: ThreadedBroker, wrong: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        broker.seed("t", ["a", wrong])

    assert [] == broker.records("t")


def test_what_the_broker_refuses_is_its_error(broker: ThreadedBroker) -> None:
    broker.create_topic("small", max_message_bytes=100)

    with pytest.raises(ApiError, match=r"exceeds max\.message\.bytes=100"):
        broker.seed("small", ["x" * 1000])


def test_records_on_a_disk_are_flushed_where_the_topic_says_so(tmp_path: Any) -> None:
    topics = {"t": {"flush_messages": 1}}
    with trionet.testing.broker(log_dir=str(tmp_path), topics=topics) as broker:
        broker.seed("t", ["a"])

        assert [b"a"] == broker.values("t")


def test_what_is_not_there_is_reported(broker: ThreadedBroker) -> None:
    with pytest.raises(LookupError, match="topic u does not exist; topics: t"):
        broker.records("u")
    with pytest.raises(LookupError, match="partition 3 does not exist; topic t has 3 partitions"):
        broker.records("t", 3)


def test_retention_is_applied_when_the_test_says_so(broker: ThreadedBroker) -> None:
    broker.create_topic("old", retention_ms=1000)
    broker.seed("old", [{"value": "a", "timestamp": 1}])
    before = broker.values("old")

    broker.apply_retention()

    assert [b"a"] == before
    assert [] == broker.values("old")


# A line of `kcat -C -J`, but its topic.
KCAT = (
    '"partition":1,"offset":5,"tstype":"create","ts":7,"broker":1,"key":"k","payload":"v",'
    '"headers":["a","1","b","2"]'
)


@pytest.mark.parametrize(
    ("line", "record"),
    [
        ('"value": "a"', NewRecord(None, b"a")),
        ('"key": "k", "value": null', NewRecord(b"k", None)),
        ('"value": {"a": [1, "ü"]}', NewRecord(None, '{"a":[1,"ü"]}'.encode())),
        ('"value": 7', NewRecord(None, b"7")),
        ('"value": {"base64": "/w=="}', NewRecord(None, b"\xff")),
        ('"partition": 2, "timestamp": 9', NewRecord(None, None, (), 2, 9)),
        ('"headers": {"a": "1", "b": null}', NewRecord(None, None, (("a", b"1"), ("b", None)))),
        ('"headers": [["a", 1], ["a", 2]]', NewRecord(None, None, (("a", b"1"), ("a", b"2")))),
        (
            KCAT,
            NewRecord(b"k", b"v", (("a", b"1"), ("b", b"2")), 1, 7),
        ),
    ],
)
def test_a_line_is_a_record_for_a_file_and_for_a_test(
    tmp_path: Path, line: str, record: NewRecord
) -> None:
    file = tmp_path / "records.jsonl"
    text = f'{{"topic": "t", {line}}}'
    file.write_text(f"{text}\n\n", "utf-8")

    assert {"t": [record]} == read_records(file)
    assert record == new_record(json.loads(text), "t")


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ('{"value": "a"}', "topic is missing"),
        ("[1]", "not a JSON object"),
        ('{"topic": "t", "valu": "a"}', "valu.*allowed: partition, key, value"),
        ('{"topic": "t", "value": {"base64": "?"}}', "base64|Non-base64|Only base64"),
        ('{"topic": "t", "partition": "one"}', "expected an integer of 0 or more"),
        ('{"topic": "t", "headers": ["a"]}', "expected names and values in turn"),
        ('{"topic": "t"', "delimiter"),
    ],
)
def test_a_line_that_is_none_is_reported_by_its_number(
    tmp_path: Path, line: str, text: str
) -> None:
    file = tmp_path / "records.jsonl"
    file.write_text(f'{{"topic": "t", "value": "a"}}\n{line}\n', "utf-8")

    with pytest.raises(ValueError, match=rf"records\.jsonl, line 2: .*({text})"):
        read_records(file)


def test_a_file_is_put_into_its_topics(tmp_path: Path) -> None:
    file = tmp_path / "records.jsonl"
    file.write_text('{"topic": "t", "value": "a"}\n{"topic": "u", "value": "b"}\n', "utf-8")

    with trionet.testing.broker() as broker:
        stored = broker.load(file)

        assert {"t": [b"a"], "u": [b"b"]} == {name: broker.values(name) for name in broker.topics()}
        assert stored == {name: broker.records(name) for name in broker.topics()}


def test_nothing_is_put_anywhere_if_a_line_is_wrong(tmp_path: Path) -> None:
    file = tmp_path / "records.jsonl"
    file.write_text('{"topic": "t", "value": "a"}\n{}\n', "utf-8")

    with trionet.testing.broker() as broker:
        with pytest.raises(ValueError, match="line 2"):
            broker.load(file)

        assert {} == broker.topics()


def test_records_for_a_compacted_topic_need_a_key_or_none_is_stored() -> None:
    with trionet.testing.broker() as broker:
        broker.create_topic("table", 2, cleanup_policy="compact")
        with pytest.raises(ValueError, match="record 1 has no key, but topic table is compacted"):
            broker.seed("table", [("k", "a"), "b"])

        assert [] == broker.records("table")
