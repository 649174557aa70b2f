"""Record batches and the messages before them, by themselves and inside Produce and Fetch."""

from __future__ import annotations

import struct
import tracemalloc
import zlib
from io import BytesIO
from typing import BinaryIO, cast

import pytest

from support.calls import TIMESTAMP, batch, produce_request
from support.decoding import decoded, framed, only, request
from trionet.cli.decode._conversation import entries
from trionet.cli.decode._sources import Kind, Source
from trionet.protocol.api_keys import PRODUCE
from trionet.protocol.records._records import encode_batch
from trionet.protocol.records.compression._codecs import NAMES, compress

TIME = "2023-11-14T22:13:20.000Z"


def test_a_batch_shows_its_header_and_its_records() -> None:
    rows = [(TIMESTAMP, b"k", b"caf\xc3\xa9", [("h", b"\x00"), ("h", None)]), (0, None, None, ())]
    data = encode_batch(rows, base_offset=5, producer_id=7, producer_epoch=1, base_sequence=3)
    found = only(decoded(data))

    assert ("batch", 0, len(data)) == (found["kind"], found["offset"], found["size"])
    header = {name: value for name, value in found["body"].items() if name != "records"}
    assert {
        "base_offset": 5,
        "last_offset": 6,
        "size": len(data),
        "magic": 2,
        "leader_epoch": -1,
        "codec": 0,
        "codec_name": "none",
        "timestamp_type": 0,
        "timestamp_type_name": "CREATE_TIME",
        "transactional": False,
        "control": False,
        "base_timestamp": TIMESTAMP,
        "base_timestamp_time": TIME,
        "max_timestamp": TIMESTAMP,
        "max_timestamp_time": TIME,
        "producer_id": 7,
        "producer_epoch": 1,
        "base_sequence": 3,
        "record_count": 2,
        "crc": f"0x{int.from_bytes(data[17:21], 'big'):08x}",
        "crc_right": True,
    } == header
    [first, second] = found["body"]["records"]
    assert {
        "offset": 5,
        "timestamp": TIMESTAMP,
        "timestamp_time": TIME,
        "key": {"bytes": 1, "text": "k"},
        "value": {"bytes": 5, "text": "café"},
        "headers": [
            {"key": "h", "value": {"bytes": 1, "hex": "00"}},
            {"key": "h", "value": None},
        ],
    } == first
    assert (6, None, None) == (second["offset"], second["key"], second["value"])


@pytest.mark.parametrize("codec", NAMES)
def test_records_of_all_codecs_are_read(codec: int) -> None:
    found = only(decoded(batch(b"one", b"two", codec=codec)))

    assert NAMES[codec] == found["body"]["codec_name"]
    assert ["one", "two"] == [record["value"]["text"] for record in found["body"]["records"]]


def test_a_wrong_crc_is_a_problem_and_the_records_are_shown() -> None:
    data = bytearray(batch(b"one"))
    data[-2] ^= 1
    [bad, good] = decoded(bytes(data) + batch(b"two"), kind=Kind.BATCHES)

    assert {"offset": 0, "text": "the CRC is wrong"} == bad["problem"]
    assert "ond" == bad["body"]["records"][0]["value"]["text"]
    assert False is bad["body"]["crc_right"]
    assert (len(data), None) == (good["offset"], good["problem"])


@pytest.mark.parametrize(
    ("number", "name"), [(0, "ABORT"), (1, "COMMIT"), (2, "LEADER_CHANGE"), (99, "UNKNOWN(99)")]
)
def test_control_records_say_their_type(number: int, name: str) -> None:
    key, value = struct.pack(">hh", 0, number), struct.pack(">hi", 0, 12)
    data = encode_batch([(TIMESTAMP, key, value, ())], control=True, transactional=True)
    body = only(decoded(data))["body"]

    assert (True, True) == (body["control"], body["transactional"])
    [record] = body["records"]
    assert (number, name) == (record["type"], record["type_name"])
    assert (12 if number < 2 else None) == record.get("coordinator_epoch")


def test_a_cut_batch_shows_its_header_and_what_is_missing() -> None:
    data = batch(b"a" * 100)
    found = only(decoded(data[:-7]))

    assert f"truncated: 7 of {len(data)} bytes are missing" == found["problem"]["text"]
    assert 1 == found["body"]["record_count"]


def test_a_fetch_may_end_inside_a_batch_and_a_problem_in_one_is_reported() -> None:
    good, bad = batch(b"one"), bytearray(batch(b"two"))
    bad[-2] ^= 1
    cut = framed(request(produce_request("t", good + good[:-5]), PRODUCE, 9))
    wrong = framed(request(produce_request("t", good + bytes(bad)), PRODUCE, 9))

    [first, second] = decoded(cut + wrong)

    assert None is first["problem"]
    records = first["body"]["topic_data"][0]["partition_data"][0]["records"]
    assert 5 == records[1]["missing_bytes"]
    assert second["problem"]["text"] == (
        "topic_data[0].partition_data[0].records[1]: the CRC is wrong"
    )


def test_what_a_segment_in_use_has_after_its_batches_is_nothing() -> None:
    assert [None] == [each["problem"] for each in decoded(batch(b"a") + bytes(10_000))]


def test_garbage_after_a_batch_says_that_nothing_more_can_be_found() -> None:
    [_, found] = decoded(batch(b"a") + b"\xff" * 100)

    assert "no batch starts here" in found["problem"]["text"]
    assert len(batch(b"a")) == found["offset"]


def message(magic: int, value: bytes, *, offset: int = 0, codec: int = 0) -> bytes:
    time = struct.pack(">q", TIMESTAMP) if magic else b""
    rest = struct.pack(">bb", magic, codec) + time + struct.pack(">i", -1)
    rest += struct.pack(">i", len(value)) + value
    return struct.pack(">qiI", offset, len(rest) + 4, zlib.crc32(rest)) + rest


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_of_older_formats_are_read(magic: int) -> None:
    [first, second] = decoded(message(magic, b"one", offset=3) + message(magic, b"two", offset=4))

    assert (None, None) == (first["problem"], second["problem"])
    assert (3, magic, True) == tuple(first["body"][key] for key in ("offset", "magic", "crc_right"))
    assert {"bytes": 3, "text": "one"} == first["body"]["value"]
    assert (TIME if magic else None) == first["body"].get("timestamp_time")


@pytest.mark.parametrize(("magic", "offsets"), [(0, [0, 1]), (1, [8, 9])])
def test_the_messages_in_a_compressed_one_are_read(magic: int, offsets: list[int]) -> None:
    """Those of magic 1 count from the first one; the outer message has the last one's offset."""
    inner = message(magic, b"one") + message(magic, b"two", offset=1)
    found = only(decoded(message(magic, compress(1, inner), offset=9, codec=1)))

    assert None is found["problem"]
    messages = found["body"]["messages"]
    assert offsets == [each["offset"] for each in messages]
    assert ["one", "two"] == [each["value"]["text"] for each in messages]


class Endless(BytesIO):
    """A file of the same batch again and again, of which none is kept."""

    def __init__(self, data: bytes, count: int) -> None:
        super().__init__()
        self._data = data
        self._left = len(data) * count

    def read(self, size: int | None = -1) -> bytes:
        assert size is not None
        assert 0 <= size < 1_000_000
        start = -self._left % len(self._data)
        size = min(size, self._left)
        self._left -= size
        turns = (start + size) // len(self._data) + 1
        return (self._data * turns)[start : start + size]


@pytest.mark.slow
def test_a_large_segment_is_not_loaded() -> None:
    data = batch(b"a" * 100_000)
    source = Source("large", cast(BinaryIO, Endless(data, 500)))
    tracemalloc.start()

    numbers = [each.number for each in entries([(source, Kind.BATCHES)])]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert list(range(1, 501)) == numbers
    assert 50_000_000 < source.offset
    assert peak < 5_000_000
