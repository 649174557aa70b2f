"""Files of JSON lines with records."""

from __future__ import annotations

from pathlib import Path

import pytest

import trionet
from trionet.testing.internals._record_files import read_records
from trionet.testing.internals._records import NewRecord

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
def test_a_line_is_a_record(tmp_path: Path, line: str, record: NewRecord) -> None:
    file = tmp_path / "records.jsonl"
    file.write_text(f'{{"topic": "t", {line}}}\n\n', "utf-8")

    assert {"t": [record]} == read_records(file)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ('{"value": "a"}', "topic is missing"),
        ("[1]", "not a JSON object"),
        ('{"topic": "t", "valu": "a"}', "valu.*allowed: partition, key, value"),
        ('{"topic": "t", "value": {"base64": "?"}}', "base64|Non-base64|Only base64"),
        ('{"topic": "t", "partition": "one"}', "expected an integer of 0 or more"),
        ('{"topic": "t", "headers": ["a"]}', "shorter"),
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
