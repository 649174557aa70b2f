"""What the reference says was measured, measured again: both servers, byte for byte.

A response of None means that the server closes the connection without one.
"""

from __future__ import annotations

import gzip
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pytest

from support.jafka import SERVERS
from support.jafka_exchange import (
    PACKED,
    PROBE,
    PROBED,
    end_of,
    exchange,
    framed,
    produce,
    response_to,
    text,
)
from support.jafka_wire import entry
from trionet.jafka._codec import (
    encode_count,
    encode_messages,
    encode_offsets,
    encode_request,
    encode_response,
    response_head,
)
from trionet.jafka._requests import (
    CreaterRequest,
    DeleterRequest,
    FetchRequest,
    JafkaRequest,
    MultiFetchRequest,
    MultiProducerRequest,
    OffsetRequest,
    ProducerRequest,
)

HELLO = encode_messages([b"hello", b"world!"])
DEMO = entry(b"demo")
NOTHING = b""
EMPTY = encode_response()
CLOSED = None
PARTITIONS = 3
PAYLOAD_BYTES_MAX = 1000
REQUEST_BYTES_MAX = 5000
SETTINGS = {
    "num.partitions": str(PARTITIONS),
    "max.message.size": str(PAYLOAD_BYTES_MAX),
    "max.socket.request.bytes": str(REQUEST_BYTES_MAX),
    "log.file.size": "400",
}


@attrs.frozen
class Running:
    """A running server: its name, its port and its data folder."""

    name: str
    port: int
    data: Path

    @property
    def is_ours(self) -> bool:
        return self.name == "trionet"


@pytest.fixture(scope="module", params=list(SERVERS))
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    data = tmp_path_factory.mktemp(request.param)
    with SERVERS[request.param](data, SETTINGS) as (port, _):
        yield Running(request.param, port, data)


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A name that no other test has."""
    return f"t{abs(hash(request.node.nodeid))}"


@pytest.fixture
def filled(server: Running, topic: str) -> str:
    """A topic whose partition 0 has 31 bytes: `hello` and `world!`."""
    assert produce(server.port, topic, 0, HELLO) == NOTHING
    return topic


# 2: requests in general.


@pytest.mark.parametrize(
    ("request_of", "expected"),
    [
        (lambda topic: FetchRequest(topic, 0, 0, 1000), encode_response(HELLO)),
        (lambda topic: ProducerRequest(topic, 0, DEMO), NOTHING),
    ],
)
def test_2_bytes_after_the_fields_are_ignored(
    server: Running, filled: str, request_of: Callable[[str], JafkaRequest], expected: bytes
) -> None:
    frame = encode_request(request_of(filled))
    longer = struct.pack(">i", len(frame)) + frame[4:] + b"more"

    assert response_to(server.port, longer) == expected


@pytest.mark.parametrize("kind", range(7))
def test_2_a_body_that_is_too_short_closes(server: Running, kind: int) -> None:
    """Not of 5 and 6, which Jafka reads as far as there is something."""
    assert response_to(server.port, framed(kind, b"\0")) is CLOSED
    assert response_to(server.port, framed(kind, text("topic") + b"\0")) is CLOSED


# 2.1: produce.


@pytest.mark.parametrize("partition", [-2, -1000, PARTITIONS, 1000])
def test_2_1_a_partition_out_of_range_closes(server: Running, topic: str, partition: int) -> None:
    assert produce(server.port, topic, partition, DEMO) is CLOSED


def test_2_1_minus_one_is_some_partition(server: Running, topic: str) -> None:
    for _ in range(40):
        assert produce(server.port, topic, -1, DEMO) == NOTHING

    ends = [end_of(server.port, topic, partition) or 0 for partition in range(PARTITIONS)]
    assert sum(ends) == 40 * len(DEMO)
    assert all(ends)


def test_2_1_the_first_produce_creates_the_logs_of_all_partitions(
    server: Running, topic: str
) -> None:
    assert produce(server.port, topic, 1, DEMO) == NOTHING

    found = {each.name for each in server.data.iterdir() if each.name.startswith(topic)}
    assert found == {f"{topic}-{partition}" for partition in range(PARTITIONS)}
    files = [each.name for each in (server.data / f"{topic}-1").iterdir()]
    assert files == ["00000000000000000000.jafka"]


INVALID = {
    "too large": entry(bytes(PAYLOAD_BYTES_MAX + 1)),
    "wrong CRC": entry(b"demo", crc=1),
    "magic 2": entry(b"demo", magic=2),
    "snappy": entry(PACKED, attributes=2),
    "codec 3": entry(PACKED, attributes=3),
    "no gzip": entry(b"demo", attributes=1),
    "a wrong CRC inside": entry(gzip.compress(entry(b"demo", crc=1)), attributes=1),
    "a length of 5": b"\0\0\0\5\1" + bytes(4),
    "a length of 0": bytes(4),
    "a negative length": b"\xff\xff\xff\xff" + bytes(20),
}


@pytest.mark.parametrize("name", INVALID)
def test_2_1_and_3_an_invalid_entry_closes_and_nothing_is_appended(
    server: Running, filled: str, name: str
) -> None:
    assert produce(server.port, filled, 0, INVALID[name]) is CLOSED
    assert produce(server.port, filled, 0, DEMO + INVALID[name]) is CLOSED

    assert end_of(server.port, filled) == len(HELLO)


VALID = {
    "the largest": entry(bytes(PAYLOAD_BYTES_MAX)),
    "an empty payload": entry(b""),
    "upper attributes": entry(b"demo", attributes=0xFC),
    "gzip": entry(PACKED, attributes=1),
    "gzip in gzip": entry(gzip.compress(entry(PACKED, attributes=1)), attributes=1),
    "nothing": b"",
}


@pytest.mark.parametrize("name", VALID)
def test_2_1_and_3_valid_entries_are_appended_as_they_are(
    server: Running, topic: str, name: str
) -> None:
    assert produce(server.port, topic, 0, VALID[name]) == NOTHING

    assert end_of(server.port, topic) == len(VALID[name])
    fetched = response_to(server.port, FetchRequest(topic, 0, 0, 4000))
    assert fetched == encode_response(VALID[name])


@pytest.mark.parametrize("cut", [1, 3, 4, 8, len(DEMO) - 1])
def test_2_1_an_incomplete_last_entry_is_cut_off(server: Running, topic: str, cut: int) -> None:
    assert produce(server.port, topic, 0, HELLO + DEMO[:cut]) == NOTHING

    fetched = response_to(server.port, FetchRequest(topic, 0, 0, 4000))
    assert fetched == encode_response(HELLO)


@pytest.mark.parametrize("cut", [4, 8, len(DEMO) - 1])
def test_2_1_an_incomplete_first_entry_closes(server: Running, topic: str, cut: int) -> None:
    assert produce(server.port, topic, 0, DEMO[:cut]) is CLOSED


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_2_1_fewer_than_four_stray_bytes_are_ignored(server: Running, topic: str, cut: int) -> None:
    assert produce(server.port, topic, 0, DEMO[:cut]) == NOTHING
    assert end_of(server.port, topic) == 0


def test_2_1_an_empty_or_null_topic_closes(server: Running) -> None:
    assert produce(server.port, "", 0, DEMO) is CLOSED
    assert response_to(server.port, ProducerRequest(None, 0, DEMO)) is CLOSED


# 2.2: fetch.


@pytest.mark.parametrize(
    ("fetch", "expected"),
    [
        ((0, 0, 1000), encode_response(HELLO)),
        ((0, 15, 1000), encode_response(HELLO[15:])),
        ((0, 0, 20), encode_response(HELLO[:20])),
        ((0, 0, 1), encode_response(HELLO[:1])),
        ((0, 5, 1000), encode_response(HELLO[5:])),  # inside an entry
        ((0, 31, 1000), EMPTY),
        ((0, 32, 1000), encode_response(b"", 1)),
        ((0, -1, 1000), encode_response(b"", 1)),
        ((0, 2**62, 1000), encode_response(b"", 1)),
        ((1, 0, 1000), EMPTY),
        ((PARTITIONS, 0, 1000), encode_response(b"", 3)),
        ((-1, 0, 1000), encode_response(b"", 3)),
        ((0, 0, 0), EMPTY),
    ],
)
def test_2_2_a_fetch(
    server: Running, filled: str, fetch: tuple[int, int, int], expected: bytes
) -> None:
    assert response_to(server.port, FetchRequest(filled, *fetch)) == expected


@pytest.mark.parametrize("offset", [0, 5, -1, 2**62])
def test_2_2_a_topic_that_was_never_created_is_empty(
    server: Running, topic: str, offset: int
) -> None:
    assert response_to(server.port, FetchRequest(topic, 0, offset, 1000)) == EMPTY


ILLEGAL = ["", ".", "..", "a/b", "/", "a\0b", "a\x1fb", "a\x7fb", "\ue000", "\uffff", "x" * 256]


@pytest.mark.parametrize("name", ILLEGAL)
def test_2_2_an_illegal_topic_is_error_minus_one(server: Running, name: str) -> None:
    assert response_to(server.port, FetchRequest(name, 0, 0, 1000)) == encode_response(b"", -1)


def test_2_2_a_null_topic_closes(server: Running) -> None:
    assert response_to(server.port, FetchRequest(None, 0, 0, 1000)) is CLOSED


@pytest.mark.parametrize("name", ["a b", "a-b", "-", "\u4e2d\u6587", "...", "x" * 200])
def test_7_other_names_are_legal(server: Running, name: str) -> None:
    assert produce(server.port, name, 0, DEMO) == NOTHING
    assert response_to(server.port, FetchRequest(name, 0, 0, 99)) == encode_response(DEMO)


@pytest.fixture
def rolled(server: Running, topic: str) -> str:
    """A topic whose first segment has 420 bytes, and the second one 300."""
    for _ in range(12):
        assert produce(server.port, topic, 0, entry(bytes(50))) == NOTHING
    return topic


def test_2_2_a_fetch_never_crosses_a_segment(server: Running, rolled: str) -> None:
    whole = entry(bytes(50)) * 12

    first = response_to(server.port, FetchRequest(rolled, 0, 0, 10_000))
    second = response_to(server.port, FetchRequest(rolled, 0, 420, 10_000))

    assert first == encode_response(whole[:420])
    assert second == encode_response(whole[420:])
    names = sorted(each.name for each in (server.data / f"{rolled}-0").iterdir())
    assert names == ["00000000000000000000.jafka", "00000000000000000420.jafka"]


# 2.3: multifetch.


def test_2_3_each_part_has_its_own_error(server: Running, filled: str) -> None:
    parts = [(filled, 0, 0, 1000), (filled, 9, 0, 1000), (filled, 0, 99, 9), ("a/b", 0, 0, 9)]
    request = MultiFetchRequest(tuple(FetchRequest(*part) for part in parts))

    found = response_to(server.port, request)

    sets = response_head(31) + HELLO + response_head(0, 3) + response_head(0, 1)
    assert found == encode_response(sets + response_head(0, -1))


def test_2_3_no_parts_are_nothing(server: Running) -> None:
    assert response_to(server.port, MultiFetchRequest(())) == EMPTY


@pytest.mark.parametrize("count", [-1, 2])
@pytest.mark.parametrize("kind", [2, 3])
def test_2_3_a_wrong_number_of_parts_closes(server: Running, kind: int, count: int) -> None:
    part = FetchRequest("topic", 0, 0, 9) if kind == 2 else ProducerRequest("topic", 0, b"")
    body = struct.pack(">h", count) + encode_request(part)[6:]

    assert response_to(server.port, framed(kind, body)) is CLOSED


# 2.4: multiproduce.


def test_2_4_parts_are_applied_in_order_and_not_atomically(server: Running, filled: str) -> None:
    parts = [
        ProducerRequest(filled, 0, DEMO),
        ProducerRequest(filled, 99, DEMO),
        ProducerRequest(filled, 0, DEMO),
    ]

    assert response_to(server.port, MultiProducerRequest(tuple(parts))) is CLOSED

    assert end_of(server.port, filled) == len(HELLO + DEMO)


def test_2_4_all_parts_are_applied(server: Running, topic: str) -> None:
    parts = tuple(ProducerRequest(topic, partition, DEMO) for partition in (0, 2, 0))

    assert response_to(server.port, MultiProducerRequest(parts)) == NOTHING

    assert [end_of(server.port, topic, each) for each in range(3)] == [28, 0, 14]


# 2.5: offsets.


@pytest.mark.parametrize(
    ("partition", "at", "count", "expected"),
    [
        (0, -1, 10, [31, 0]),
        (0, -1, 1, [31]),
        (0, -2, 10, [0]),
        (1, -1, 10, [0]),
        (0, 0, 10, []),
        (0, -1, 0, []),
    ],
)
def test_2_5_offsets(
    server: Running, filled: str, partition: int, at: int, count: int, expected: list[int]
) -> None:
    found = response_to(server.port, OffsetRequest(filled, partition, at, count))

    assert found == encode_offsets(expected)


def test_2_5_offsets_of_a_topic_that_was_never_created(server: Running, topic: str) -> None:
    assert response_to(server.port, OffsetRequest(topic, 0, -1, 10)) == encode_offsets([])


def test_2_5_offsets_of_a_rolled_log(server: Running, rolled: str) -> None:
    def offsets(at: int, count: int = 10) -> bytes | None:
        return response_to(server.port, OffsetRequest(rolled, 0, at, count))

    assert offsets(-1) == encode_offsets([720, 420, 0])
    assert offsets(-1, 2) == encode_offsets([720, 420])
    assert offsets(-2) == encode_offsets([0])
    future = int(time.time() * 1000) + 3_600_000
    # 8.3: Jafka's list begins one entry too late.
    assert offsets(future) == encode_offsets([720, 420, 0] if server.is_ours else [420, 0])


@pytest.mark.parametrize("name", ILLEGAL)
def test_2_5_offsets_of_an_illegal_topic_close(server: Running, name: str) -> None:
    assert response_to(server.port, OffsetRequest(name, 0, -1, 10)) is CLOSED


def test_2_5_offsets_with_other_errors_close(server: Running, filled: str) -> None:
    assert response_to(server.port, OffsetRequest(filled, 0, -1, -1)) is CLOSED
    assert response_to(server.port, OffsetRequest(filled, PARTITIONS, -1, 1)) is CLOSED
    assert response_to(server.port, OffsetRequest(filled, -1, -1, 1)) is CLOSED
    assert response_to(server.port, OffsetRequest(None, 0, -1, 1)) is CLOSED


# 2.6: create.


def test_2_6_create_sets_the_count_of_a_topic(server: Running, topic: str) -> None:
    assert response_to(server.port, CreaterRequest(topic, 4, 1)) == encode_count(4)
    assert produce(server.port, topic, 3, DEMO) == NOTHING
    assert produce(server.port, topic, 4, DEMO) is CLOSED


def test_2_6_create_with_enough_logs_changes_nothing(server: Running, filled: str) -> None:
    assert response_to(server.port, CreaterRequest(filled, 2, 1)) == encode_count(PARTITIONS)


@pytest.mark.parametrize("enlarge", [0, 1, 2])
def test_2_6_enlarge_is_ignored_here_and_after_jafka_3_0_6(
    server: Running, filled: str, enlarge: int
) -> None:
    found = response_to(server.port, CreaterRequest(filled, 4, enlarge))

    is_ignored = server.is_ours or enlarge == 1
    assert found == encode_count(4 if is_ignored else PARTITIONS)


def test_8_7_create_never_shrinks_a_topic(server: Running, topic: str) -> None:
    """Jafka does after 3.0.6, before there is a log."""
    assert response_to(server.port, CreaterRequest(topic, 5, 1)) == encode_count(5)
    assert response_to(server.port, CreaterRequest(topic, 2, 1)) == encode_count(5)


def test_8_7_zero_partitions_ask_for_the_count(server: Running, topic: str) -> None:
    assert response_to(server.port, CreaterRequest(topic, 0, 1)) == encode_count(PARTITIONS)


def test_2_6_a_negative_count_and_an_illegal_topic_close(server: Running, topic: str) -> None:
    assert response_to(server.port, CreaterRequest(topic, -1, 1)) is CLOSED
    for name in ILLEGAL:
        assert response_to(server.port, CreaterRequest(name, 1, 1)) is CLOSED
    assert response_to(server.port, CreaterRequest(None, 1, 1)) is CLOSED


# 2.7: delete. Servers with passwords are in test_passwords.


def test_2_7_delete_says_how_many_logs_there_were(server: Running, filled: str) -> None:
    assert response_to(server.port, DeleterRequest(filled, "any")) == encode_count(PARTITIONS)
    assert response_to(server.port, DeleterRequest(filled, None)) == encode_count(0)
    assert end_of(server.port, filled) is None
    assert not list(server.data.glob(f"{filled}-*"))
    assert produce(server.port, filled, 0, DEMO) == NOTHING
    assert end_of(server.port, filled) == len(DEMO)


def test_2_7_delete_keeps_the_count_of_a_topic(server: Running, filled: str) -> None:
    assert response_to(server.port, CreaterRequest(filled, 5, 1)) == encode_count(5)
    assert response_to(server.port, DeleterRequest(filled, "")) == encode_count(PARTITIONS)
    assert produce(server.port, filled, 4, DEMO) == NOTHING


# 6: connections.


@pytest.mark.parametrize("size", [0, -1, -(2**31), REQUEST_BYTES_MAX + 1, 2**31 - 1])
def test_6_a_size_out_of_range_closes_on_its_four_bytes(server: Running, size: int) -> None:
    assert exchange(server.port, struct.pack(">i", size)) == b""
    assert response_to(server.port, struct.pack(">i", size)) is CLOSED


def test_6_the_largest_request_is_handled(server: Running, topic: str) -> None:
    request = encode_request(FetchRequest(topic, 0, 0, 9))
    padded = struct.pack(">i", REQUEST_BYTES_MAX) + request[4:].ljust(REQUEST_BYTES_MAX, b"\0")

    assert response_to(server.port, padded) == EMPTY


@pytest.mark.parametrize("kind", [7, 8, -1, 256, 32767, -32768])
def test_6_an_unknown_type_closes(server: Running, kind: int) -> None:
    assert response_to(server.port, framed(kind, text("topic") + bytes(40))) is CLOSED


def test_6_requests_in_one_write_are_responded_in_order(server: Running, filled: str) -> None:
    found = response_to(
        server.port,
        FetchRequest(filled, 0, 0, 1000),
        OffsetRequest(filled, 0, -1, 10),
        ProducerRequest(filled, 0, DEMO),
        FetchRequest(filled, 0, 31, 1000),
    )

    assert found == encode_response(HELLO) + encode_offsets([31, 0]) + encode_response(DEMO)


def test_6_all_that_was_produced_before_is_counted(server: Running, topic: str) -> None:
    requests = [ProducerRequest(topic, 0, entry(b"x"))] * 30

    found = response_to(server.port, *requests, OffsetRequest(topic, 0, -1, 1))

    assert found == encode_offsets([30 * 11])


def test_6_a_request_may_arrive_byte_by_byte(server: Running, filled: str) -> None:
    stream = encode_request(FetchRequest(filled, 0, 0, 1000)) + PROBE

    found = exchange(server.port, *(bytes([each]) for each in stream))

    assert found == encode_response(HELLO) + PROBED


# 8: what is decided otherwise.


@pytest.mark.parametrize("name", ["a/b", "a\0b"])
def test_8_1_an_illegal_topic_is_not_produced_to_here(server: Running, name: str) -> None:
    if server.is_ours:
        assert produce(server.port, name, 0, DEMO) is CLOSED
        assert not (server.data / "a").exists()


def test_8_1_jafka_makes_a_nested_folder(tmp_path: Path) -> None:
    with SERVERS["jafka"](tmp_path) as (port, _):
        assert produce(port, "a/b", 0, DEMO) == NOTHING
        assert (tmp_path / "a" / "b-0").is_dir()


@pytest.mark.parametrize("bytes_max", [-1, -100, -(2**31)])
def test_8_2_a_negative_size_is_error_4_here_and_breaks_jafkas_stream(
    server: Running, filled: str, bytes_max: int
) -> None:
    request = FetchRequest(filled, 0, 0, bytes_max)

    if server.is_ours:
        assert response_to(server.port, request) == encode_response(b"", 4)
    else:
        received = exchange(server.port, encode_request(request))
        assert len(received) < 6 or struct.unpack(">i", received[:4])[0] < 2


def test_9_3_magic_0_is_accepted_here(server: Running, filled: str) -> None:
    """Kafka 0.7's clients write it; Jafka refuses it."""
    old = entry(b"demo", magic=0)

    if server.is_ours:
        assert produce(server.port, filled, 0, old) == NOTHING
        assert response_to(server.port, FetchRequest(filled, 0, 31, 99)) == encode_response(old)
    else:
        assert produce(server.port, filled, 0, old) is CLOSED


# 2.7 with passwords.

MD5 = "md5:77be29f6d71ec4e310766ddf881ae6a0"
CRC32 = "crc32:1725717671"


@pytest.mark.parametrize("name", list(SERVERS))
@pytest.mark.parametrize(
    ("setting", "of_null"), [("plain:jafka", encode_count(-1)), (MD5, CLOSED), (CRC32, CLOSED)]
)
def test_2_7_passwords(name: str, setting: str, of_null: bytes | None, tmp_path: Path) -> None:
    with SERVERS[name](tmp_path, {"password": setting}) as (port, _):
        assert produce(port, "demo", 0, DEMO) == NOTHING
        assert response_to(port, DeleterRequest("demo", "guess")) == encode_count(-1)
        assert response_to(port, DeleterRequest("demo", "")) == encode_count(-1)
        assert response_to(port, DeleterRequest("demo", None)) == of_null
        assert end_of(port, "demo") == len(DEMO)
        assert response_to(port, DeleterRequest("demo", "jafka")) == encode_count(1)
        assert response_to(port, DeleterRequest("demo", "jafka")) == encode_count(0)
