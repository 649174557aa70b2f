"""A data folder of Jafka is read and continued by ours, and ours by Jafka, byte for byte."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from support.jafka import SERVERS
from support.jafka_exchange import PACKED, end_of, produce, response_to
from support.jafka_wire import entry
from trionet.jafka._codec import encode_count, encode_messages
from trionet.jafka._requests import CreaterRequest, FetchRequest

SETTINGS = {"num.partitions": "2", "log.file.size": "300"}
TOPICS = ("orders", "with-dash", "\u4e2d\u6587 name")
CLEAN_STOP = ".jafka_cleanshutdown"
BOTH_WAYS = pytest.mark.parametrize(
    ("first", "second"), [("jafka", "trionet"), ("trionet", "jafka")]
)


def fill(port: int, start: int) -> dict[tuple[str, int], bytes]:
    """Produce to all partitions of all topics, and return what was."""
    filled = dict.fromkeys(((topic, number) for topic in TOPICS for number in range(2)), b"")
    for (topic, partition), written in filled.items():
        for number in range(start, start + 20):
            messages = encode_messages([b"%d of %d" % (number, partition), b"", b"x" * number])
            messages += entry(PACKED, attributes=1)
            assert produce(port, topic, partition, messages) == b""
            written += messages
        filled[topic, partition] = written
    return filled


def read(port: int, topic: str, partition: int, start: int = 0) -> bytes:
    """Everything in a partition, segment after segment."""
    found = bytearray()
    while True:
        received = response_to(port, FetchRequest(topic, partition, start + len(found), 10_000))
        assert received is not None
        assert struct.unpack(">h", received[4:6]) == (0,)
        if len(received) == 6:
            return bytes(found)
        found += received[6:]


def files(data: Path) -> dict[str, bytes]:
    """The segments of all logs."""
    return {path.relative_to(data).as_posix(): path.read_bytes() for path in data.glob("*/*")}


def joined(data: Path, topic: str, partition: int) -> bytes:
    """The segments of a log, one after the other; their names are where they begin."""
    found = b""
    for path in sorted((data / f"{topic}-{partition}").iterdir()):
        assert path.name == f"{len(found):020d}.jafka"
        found += path.read_bytes()
    return found


@BOTH_WAYS
def test_a_folder_changes_hands_and_comes_back(first: str, second: str, tmp_path: Path) -> None:
    with SERVERS[first](tmp_path, SETTINGS) as (port, _):
        written = fill(port, 0)
    assert (tmp_path / CLEAN_STOP).exists()
    before = files(tmp_path)
    for (topic, partition), data in written.items():
        assert joined(tmp_path, topic, partition) == data

    with SERVERS[second](tmp_path, SETTINGS) as (port, _):
        assert files(tmp_path) == before
        assert not (tmp_path / CLEAN_STOP).exists()
        for (topic, partition), data in written.items():
            assert end_of(port, topic, partition) == len(data)
            assert read(port, topic, partition) == data
        for place, data in fill(port, 20).items():
            written[place] += data
    assert (tmp_path / CLEAN_STOP).exists()

    with SERVERS[first](tmp_path, SETTINGS) as (port, _):
        for (topic, partition), data in written.items():
            assert end_of(port, topic, partition) == len(data)
            assert read(port, topic, partition) == data
            assert joined(tmp_path, topic, partition) == data


def test_both_write_the_same_files(tmp_path: Path) -> None:
    for name in SERVERS:
        with SERVERS[name](tmp_path / name, SETTINGS) as (port, _):
            fill(port, 0)

    ours, theirs = files(tmp_path / "trionet"), files(tmp_path / "jafka")
    assert ours == theirs


@BOTH_WAYS
def test_a_partition_that_exists_counts(first: str, second: str, tmp_path: Path) -> None:
    """The count of a topic that was created is known by its folders."""
    with SERVERS[first](tmp_path, SETTINGS) as (port, _):
        assert response_to(port, CreaterRequest("made", 5, 1)) == encode_count(5)
        assert produce(port, "made", 0, entry(b"x")) == b""

    with SERVERS[second](tmp_path, SETTINGS) as (port, _):
        assert produce(port, "made", 4, entry(b"x")) == b""
        assert produce(port, "made", 5, entry(b"x")) is None


TORN = {
    "nothing": b"",
    "a part of a length": b"\0\0",
    "a part of an entry": entry(b"torn")[:-1],
    "a wrong CRC": entry(b"torn", crc=1),
    "a length that is too short": b"\0\0\0\5\1" + bytes(4),
    "zeros": bytes(50),
}


@BOTH_WAYS
@pytest.mark.parametrize("name", TORN)
def test_a_torn_end_is_cut_where_the_other_would(
    first: str, second: str, name: str, tmp_path: Path
) -> None:
    with SERVERS[first](tmp_path, SETTINGS) as (port, process):
        written = fill(port, 0)
        process.kill()
        process.wait()
    assert not (tmp_path / CLEAN_STOP).exists()
    last = max((tmp_path / "orders-0").iterdir())
    with last.open("ab") as file:
        file.write(TORN[name])

    with SERVERS[second](tmp_path, SETTINGS) as (port, _):
        for (topic, partition), data in written.items():
            assert end_of(port, topic, partition) == len(data)
            assert read(port, topic, partition) == data
        assert produce(port, "orders", 0, entry(b"more")) == b""
        assert read(port, "orders", 0) == written["orders", 0] + entry(b"more")
