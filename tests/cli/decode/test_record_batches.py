"""Record batches and the messages before them, whole and cut, and how much of them is shown."""

from __future__ import annotations

import struct
import tracemalloc
import zlib
from io import BytesIO
from typing import Any, BinaryIO, cast

import pytest

from support.calls import TIMESTAMP, batch, produce_request
from support.decoding import decoded, framed, only, request
from trionet.cli.decode import _record_batches as record_batches
from trionet.cli.decode._conversation import entries
from trionet.cli.decode._sources import Kind, Source
from trionet.errors import WireFormatError
from trionet.protocol.api_keys import PRODUCE
from trionet.protocol.records._batch import HEADER_SIZE
from trionet.protocol.records._records import decode_batch, encode_batch
from trionet.protocol.records._types import Headers, NewRecord
from trionet.protocol.records.compression._codecs import GZIP, NAMES, ZSTD, compress
from trionet.protocol.records.message_sets._message_set import encode_message_set

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


SHOWN = 10


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_batches, "RECORDS_SHOWN_MAX", SHOWN)


def rows(count: int, headers: Headers = ()) -> list[NewRecord]:
    return [(number, b"k", b"v", headers) for number in range(count)]


def in_a_frame(records: bytes) -> list[dict[str, Any]]:
    """The batches of a Produce, which is well-formed."""
    found = only(decoded(request(produce_request("t", records), PRODUCE, 9)))
    assert None is found["problem"]
    batches: list[dict[str, Any]] = found["body"]["topic_data"][0]["partition_data"][0]["records"]
    return batches


@pytest.mark.parametrize("codec", [0, ZSTD])
@pytest.mark.parametrize(("count", "shown"), [(9, 9), (10, 10), (11, 10), (5000, 10)])
def test_the_first_records_of_a_batch_are_shown(codec: int, count: int, shown: int) -> None:
    found = only(decoded(encode_batch(rows(count), base_offset=7, codec=codec)))

    assert None is found["problem"]
    assert [*range(7, 7 + shown)] == [record["offset"] for record in found["body"]["records"]]
    assert count == found["body"]["record_count"]
    assert (count - shown or None) == found["body"].get("records_left_out")


def test_headers_count_as_records_do() -> None:
    three = [("a", b"1"), ("b", None), ("c", b"x" * 200)]
    body = only(decoded(encode_batch(rows(5, three))))["body"]

    assert [0, 1] == [record["offset"] for record in body["records"]]
    assert 3 == body["records_left_out"]


def test_the_batches_of_a_frame_share_what_is_shown() -> None:
    shown = [
        (len(each["records"]), each.get("records_left_out"))
        for each in in_a_frame(encode_batch(rows(6), codec=GZIP) * 3)
    ]

    assert [(6, None), (4, 2), (0, 6)] == shown


def test_they_share_how_far_they_may_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_batches, "INFLATED_BYTES_MAX", 1000)
    batch = encode_batch([(0, None, bytes(600), ())], codec=GZIP)

    assert [1, 1, 0] == [len(each["records"]) for each in in_a_frame(batch * 3)]
    monkeypatch.setattr(record_batches, "INFLATED_BYTES_MAX", 500)
    assert "larger than 500 bytes" in only(decoded(batch))["problem"]["text"]


@pytest.mark.parametrize("magic", [0, 1])
def test_the_first_messages_of_a_compressed_one_are_shown(magic: int) -> None:
    records = [(number, 1, b"k", b"v", ()) for number in range(14)]
    found = only(decoded(encode_message_set(records, magic=magic, codec=GZIP)))

    assert [*range(10)] == [each["offset"] for each in found["body"]["messages"]]
    assert (4, None) == (found["body"]["messages_left_out"], found["problem"])


@pytest.mark.parametrize(("at", "byte"), [(0, 1), (0, 8), (0, 255), (4, 3), (5, 3), (6, 1)])
def test_a_malformed_record_among_too_many_is_reported(at: int, byte: int) -> None:
    """What counts records reads on as far as what reads them."""
    data = bytearray(encode_batch([(0, b"", b"", ())] * 100))
    data[HEADER_SIZE + at] = byte
    found = only(decoded(bytes(data)))

    with pytest.raises(WireFormatError) as malformed:
        decode_batch(data)
    assert f"{malformed.value} (and the CRC is wrong)" == found["problem"]["text"]


@pytest.mark.slow
@pytest.mark.parametrize("headers", [False, True])
def test_a_bomb_costs_little_more_than_what_it_inflates_to(headers: bool) -> None:
    """The shortest records, or the shortest headers, which would each be a tuple."""
    count = 500_000
    many: list[tuple[str, bytes | None]] = [("", None)] * count
    data = encode_batch([(0, b"", b"", many)] if headers else [(0, b"", b"", ())] * count, codec=1)
    tracemalloc.start()

    found = only(decoded(data))

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert None is found["problem"]
    assert found["body"]["records_left_out"]
    assert peak < 40 * count
