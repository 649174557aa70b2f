"""Jafka's wire format: the vectors that were measured at the original, and what holds for any."""

from __future__ import annotations

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.jafka_wire import entry
from trionet.errors import WireFormatError
from trionet.jafka._codec import (
    DECODED_PARTS_MAX,
    LATEST,
    NESTED_MAX,
    RANDOM_PARTITION,
    check_compressed,
    check_set,
    decode_count,
    decode_in_steps,
    decode_messages,
    decode_offsets,
    decode_parts,
    decode_produced,
    decode_request,
    decode_response,
    encode_count,
    encode_messages,
    encode_offsets,
    encode_request,
    encode_response,
    first_entry_bytes,
    response_head,
    valid_bytes,
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
from trionet.protocol.records.compression._codecs import GZIP

LIMIT = 1_000_000
HELLO = bytes.fromhex("0000000b 01003610a68668656c6c6f")
WORLD = bytes.fromhex("0000000c 0100718498e8776f726c6421")
DEMO = bytes.fromhex("0000000a 0100d642dfa064656d6f")
EMPTY = bytes.fromhex("00000006 010000000000")
A = bytes.fromhex("00000007 0100e8b7be4361")
B = bytes.fromhex("00000007 010071beeff962")


def checked(data: bytes) -> tuple[int, int, list[memoryview]]:
    """Where the valid entries of a short set end, how many messages they are; what is packed."""
    compressed: list[memoryview] = []
    return (*check_set(data, LIMIT, compressed), compressed)


REQUESTS: list[tuple[JafkaRequest, str]] = [
    (
        ProducerRequest("t", 0, HELLO + WORLD),
        f"0000002c 0000 0001 74 00000000 0000001f {HELLO.hex()} {WORLD.hex()}",
    ),
    (
        ProducerRequest("demo", RANDOM_PARTITION, DEMO),
        f"0000001e 0000 0004 64656d6f ffffffff 0000000e {DEMO.hex()}",
    ),
    (
        MultiProducerRequest((ProducerRequest("demo", 0, A), ProducerRequest("demo", 0, B))),
        (
            "00000036 0003 0002"
            " 0004 64656d6f 00000000 0000000b 000000070100e8b7be4361"
            " 0004 64656d6f 00000000 0000000b 00000007010071beeff962"
        ),
    ),
    (
        FetchRequest("demo", 0, 0, 1000),
        "00000018 0001 0004 64656d6f 00000000 0000000000000000 000003e8",
    ),
    (
        MultiFetchRequest((FetchRequest("demo", 0, 0, 1000), FetchRequest("demo", 9, 0, 1000))),
        (
            "00000030 0002 0002"
            " 0004 64656d6f 00000000 0000000000000000 000003e8"
            " 0004 64656d6f 00000009 0000000000000000 000003e8"
        ),
    ),
    (
        OffsetRequest("demo", 0, LATEST, 3),
        "00000018 0004 0004 64656d6f 00000000 ffffffffffffffff 00000003",
    ),
    (CreaterRequest("made", 4, 1), "0000000d 0005 0004 6d616465 00000004 01"),
    (DeleterRequest("demo", "jafka"), "0000000f 0006 0004 64656d6f 0005 6a61666b61"),
]
BY_NAME = pytest.mark.parametrize(("request_", "frame"), REQUESTS, ids=lambda each: str(each)[:30])


@BY_NAME
def test_a_request_is_encoded_as_measured(request_: JafkaRequest, frame: str) -> None:
    """10: the frames of all seven types."""
    assert bytes.fromhex(frame) == encode_request(request_)


@BY_NAME
def test_a_request_is_decoded(request_: JafkaRequest, frame: str) -> None:
    """10: the frames of all seven types."""
    assert request_ == decode_request(bytes.fromhex(frame)[4:])


@BY_NAME
def test_what_follows_the_fields_is_ignored(request_: JafkaRequest, frame: str) -> None:
    """2: the body may be longer than its fields."""
    assert request_ == decode_request(bytes.fromhex(frame)[4:] + b"more")


@BY_NAME
def test_a_body_that_is_too_short_is_an_error(request_: JafkaRequest, frame: str) -> None:
    """2: a body that is too short closes the connection, wherever it ends."""
    payload = bytes.fromhex(frame)[4:]
    for size in range(len(payload)):
        with pytest.raises(WireFormatError):
            decode_request(payload[:size])


@pytest.mark.parametrize("kind", [-1, 7, 18, 32767])
def test_an_unknown_type_is_an_error(kind: int) -> None:
    """6: an unknown type closes the connection."""
    with pytest.raises(WireFormatError, match=r"unknown; allowed: 0 to 6"):
        decode_request(kind.to_bytes(2, "big", signed=True) + bytes(100))


def test_a_string_of_negative_length_is_null() -> None:
    """1: a negative length decodes to null, any of them."""
    assert DeleterRequest(None, None) == decode_request(bytes.fromhex("0006 ffff 8000"))
    assert bytes.fromhex("00000006 0006 ffff ffff") == encode_request(DeleterRequest(None, None))


def test_the_length_of_a_string_counts_bytes() -> None:
    """1: the length is of the encoded bytes, not of the characters."""
    assert bytes.fromhex("0000000a 0006 0004 f09f9880 ffff") == encode_request(
        DeleterRequest("😀", None)
    )


def test_what_is_not_utf_8_is_replaced() -> None:
    """1: as Java decodes; the name is illegal then."""
    assert DeleterRequest("\ufffd", None) == decode_request(bytes.fromhex("0006 0001 ff ffff"))


@pytest.mark.parametrize("kind", ["0002", "0003"])
def test_a_negative_number_of_parts_is_an_error(kind: str) -> None:
    """2.3: a negative count closes."""
    with pytest.raises(WireFormatError, match="-1 parts; allowed: 0"):
        decode_request(bytes.fromhex(f"{kind} ffff") + bytes(100))


def test_many_parts_are_decoded_in_steps() -> None:
    """All 32,767 would take a tenth of a second, in which the server does nothing else."""
    request = MultiFetchRequest((FetchRequest("t", 0, 0, 1),) * 32767)

    *steps, decoded = decode_in_steps(encode_request(request)[4:])

    assert [None] * (32767 // DECODED_PARTS_MAX) == steps
    assert request == decoded


def test_a_negative_size_of_a_set_is_an_error() -> None:
    """2: a message set cannot have a negative size."""
    with pytest.raises(WireFormatError, match="-1 bytes"):
        decode_request(bytes.fromhex("0000 0001 74 00000000 ffffffff") + bytes(100))


@pytest.mark.parametrize(("byte", "enlarge"), [("01", 1), ("00", 0), ("02", 2)])
def test_only_1_means_to_enlarge(byte: str, enlarge: int) -> None:
    """2: 1 is yes, anything else no; the byte is kept as it is."""
    assert CreaterRequest("t", 1, enlarge) == decode_request(
        bytes.fromhex("0005 0001 74 00000001" + byte)
    )


@pytest.mark.parametrize(
    "request_",
    [
        DeleterRequest("x" * 32768, None),
        FetchRequest("t", 2**31, 0, 0),
        MultiFetchRequest((FetchRequest("t", 0, 0, 0),) * 32768),
    ],
    ids=["string", "number", "parts"],
)
def test_what_does_not_fit_is_not_encoded(request_: JafkaRequest) -> None:
    """2.3: at most 32767 parts; strings have a 16-bit length."""
    with pytest.raises(ValueError, match="cannot be encoded"):
        encode_request(request_)


def test_responses_are_as_measured() -> None:
    """10: the responses to each type of request."""
    assert bytes.fromhex("00000021 0000") + HELLO + WORLD == encode_response(HELLO + WORLD)
    assert bytes.fromhex("00000002 0000") == encode_response()
    assert bytes.fromhex("00000002 0001") == encode_response(error=1)
    assert bytes.fromhex("00000002 0003") == encode_response(error=3)
    assert bytes.fromhex("00000002 ffff") == encode_response(error=-1)
    assert bytes.fromhex(
        "00000016 0000 00000002 0000000000000059 0000000000000000"
    ) == encode_offsets([89, 0])
    assert bytes.fromhex("00000006 0000 00000000") == encode_offsets([])
    assert bytes.fromhex("0000000a 0000 00000001 00000004") == encode_count(4)
    assert bytes.fromhex("0000000a 0000 00000001 ffffffff") == encode_count(-1)


def test_responses_are_decoded() -> None:
    """10: what the client reads."""
    error, body = decode_response(encode_response(b"body", error=-1)[4:])
    assert (-1, b"body") == (error, bytes(body))
    assert [89, 0] == decode_offsets(decode_response(encode_offsets([89, 0])[4:])[1])
    assert -1 == decode_count(decode_response(encode_count(-1)[4:])[1])
    parts = encode_response(HELLO) + response_head(0, 3)
    assert [(0, HELLO), (3, b"")] == [(code, bytes(data)) for code, data in decode_parts(parts)]
    assert [] == decode_parts(b"")


@pytest.mark.parametrize(
    ("decode", "body"),
    [
        (decode_response, "00"),
        (decode_offsets, "000000"),
        (decode_offsets, "00000002 0000000000000059"),
        (decode_count, "00000001 0000"),
        (decode_parts, "00000003 0000"),
        (decode_parts, "00000001 0000"),
        (decode_parts, "0000"),
    ],
)
def test_a_response_that_is_too_short_is_an_error(decode: object, body: str) -> None:
    assert callable(decode)
    with pytest.raises(WireFormatError):
        decode(bytes.fromhex(body))


@pytest.mark.parametrize(
    ("payload", "expected"),
    [(b"hello", HELLO), (b"world!", WORLD), (b"demo", DEMO), (b"", EMPTY)],
)
def test_an_entry_is_as_measured(payload: bytes, expected: bytes) -> None:
    """10, 3: the CRC is of the payload only; the smallest message has 6 bytes."""
    assert expected == encode_messages([payload]) == entry(payload)


def test_a_message_comes_with_the_position_after_it() -> None:
    """4: after `demo`, which takes 14 bytes, the position is 14."""
    found = [(bytes(each.payload), each.next_offset) for each in decode_messages(DEMO, 0, LIMIT)]

    assert [(b"demo", 14)] == found


def test_messages_in_a_compressed_entry_have_its_position_except_the_last() -> None:
    """4, 9.2: two inner messages report 14 and 67; resuming in between replays the entry."""
    packed = entry(gzip.compress(encode_messages([b"one", b"two"]), mtime=0), attributes=1)
    found = decode_messages(DEMO + packed + A + B, 0, LIMIT)

    assert 53 == len(packed)
    assert [14, 14, 67, 78, 89] == [each.next_offset for each in found]


def test_an_incomplete_last_entry_is_dropped() -> None:
    """4: a client drops a partial last entry; `getValidBytes` is the sum of the complete ones."""
    for cut in range(1, len(WORLD)):
        data = HELLO + WORLD[:-cut]
        assert [b"hello"] == [bytes(each.payload) for each in decode_messages(data, 0, LIMIT)]
        assert (len(HELLO), 1, []) == checked(data)
        assert len(HELLO) == valid_bytes(data)


def test_an_incomplete_first_entry_is_an_error_that_says_how_long_it_is() -> None:
    """2.1, 4: if even the first entry is incomplete, it is an error; below 4 bytes it is not."""
    for size in range(4, len(HELLO)):
        with pytest.raises(WireFormatError, match="0 has 11 bytes"):
            checked(HELLO[:size])
        with pytest.raises(WireFormatError, match="0 has 11 bytes"):
            list(decode_messages(HELLO[:size], 0, LIMIT))
        assert len(HELLO) == first_entry_bytes(HELLO[:size])
    for size in range(4):
        assert (0, 0, []) == checked(HELLO[:size])
        assert 0 == first_entry_bytes(HELLO[:size])


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (entry(b"x", crc=1), "wrong CRC"),
        (entry(b"x", magic=2), "magic 2"),
        (entry(b"x", magic=255), "magic 255"),
        (entry(b"x", attributes=2), "codec 2"),
        (entry(b"x", attributes=3), "codec 3"),
        (bytes.fromhex("00000005 0100000000"), "5 bytes and magic 1"),
        (bytes.fromhex("00000004 00000000 0000"), "4 bytes and magic 0"),
        (bytes.fromhex("00000000 000000000000"), "0 bytes"),
        (bytes.fromhex("ffffffff 000000000000"), "-1 bytes"),
    ],
)
@pytest.mark.parametrize("before", [b"", HELLO], ids=["first", "second"])
def test_an_invalid_entry_is_an_error(bad: bytes, why: str, before: bytes) -> None:
    """3: magic, CRC, codecs 2 and 3, and messages below the smallest size."""
    with pytest.raises(WireFormatError, match=why):
        checked(before + bad)
    with pytest.raises(WireFormatError, match=why):
        list(decode_messages(before + bad, 0, LIMIT))
    assert len(before) == valid_bytes(before + bad)


def test_the_upper_bits_of_the_attributes_are_ignored() -> None:
    """3: only the low 2 bits are the codec; the CRC covers neither magic nor attributes."""
    assert (12, 1, []) == checked(entry(b"xy", attributes=0xFC))


def test_magic_0_is_accepted() -> None:
    """9.3: what Kafka 0.7 clients write has a header of 5 bytes, as a superset; even empty."""
    data = entry(b"old", magic=0) + HELLO + entry(b"", magic=0)

    assert (len(data), 3, []) == checked(data)
    assert [b"old", b"hello", b""] == [
        bytes(each.payload) for each in decode_messages(data, 0, LIMIT)
    ]


@pytest.mark.parametrize("size", [0, 2000])
def test_a_long_set_is_checked_in_steps(size: int) -> None:
    """No client holds the loop for long; a step ends with an entry."""
    data = encode_messages([bytes(size)] * 5000)
    stop = messages = steps = 0
    while stop < len(data):
        stop, count = check_set(data, LIMIT, [], stop)
        messages += count
        steps += 1

    assert (len(data), 5000) == (stop, messages)
    assert steps > 2


def test_an_empty_message_of_magic_0_has_the_crc_of_nothing() -> None:
    with pytest.raises(WireFormatError, match="wrong CRC"):
        checked(entry(b"", magic=0, crc=1))


@pytest.mark.parametrize("compressed", [False, True])
def test_the_limit_of_a_payload_is_inclusive_and_of_the_outer_one(compressed: bool) -> None:
    """7, 3: 1000 passes and 1001 closes when the limit is 1000, whatever it decompresses to."""
    payload = gzip.compress(encode_messages([bytes(5000)])) if compressed else bytes(1000)
    data = entry(payload, attributes=int(compressed))

    check_set(data, len(payload), [])
    with pytest.raises(WireFormatError, match=r"larger than \d+ \(max.message.size\)"):
        check_set(data, len(payload) - 1, [])


def nested(levels: int, inner: bytes) -> bytes:
    for _ in range(levels):
        inner = entry(gzip.compress(inner, 1), attributes=1)
    return inner


def test_nested_sets_are_followed() -> None:
    """3: nesting is followed, also deeper than Python's stack would allow."""
    data = HELLO + nested(3, HELLO + nested(1, WORLD) + DEMO) + EMPTY
    size, count, compressed = checked(data)

    assert (len(data), 2, 3) == (size, count, sum(check_compressed(compressed, LIMIT)))
    assert [b"hello", b"hello", b"world!", b"demo", b""] == [
        bytes(each.payload) for each in decode_messages(data, 0, LIMIT)
    ]


def test_nesting_is_not_limited_by_pythons_stack() -> None:
    compressed = checked(nested(1500, HELLO))[2]

    assert 1 == sum(check_compressed(compressed, 200_000_000))


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        (b"not gzip", "gzip"),
        (b"", "gzip"),
        (gzip.compress(HELLO)[:-9], "gzip"),
        (gzip.compress(entry(b"x", crc=1)), "wrong CRC"),
        (gzip.compress(HELLO[:-1]), "of 10 that are there"),
    ],
)
def test_a_compressed_entry_must_be_valid_inside(payload: bytes, why: str) -> None:
    """3: what does not decompress closes, and so does a wrong CRC inside."""
    compressed = checked(entry(payload, attributes=1))[2]

    with pytest.raises(WireFormatError, match=why):
        sum(check_compressed(compressed, LIMIT))


@pytest.mark.parametrize("count", [NESTED_MAX, NESTED_MAX + 1])
def test_compressed_entries_in_others_are_counted(count: int) -> None:
    """A frame of some hundred bytes may decompress to a million of them."""
    compressed = checked(nested(1, nested(1, b"") * count))[2]
    steps = check_compressed(compressed, LIMIT)

    if count > NESTED_MAX:
        with pytest.raises(WireFormatError, match="more than 10000 compressed entries"):
            sum(steps)
    else:
        assert 1 < len([*steps])


def test_small_compressed_entries_are_decompressed_in_few_steps() -> None:
    """Else each of them would wait for a thread."""
    compressed = checked(nested(1, HELLO) * 1000)[2]
    found = [*check_compressed(compressed, LIMIT)]

    assert 1000 == sum(found)
    assert len(found) < 20


def test_what_is_compressed_is_bounded_on_all_levels_together() -> None:
    """8.4: a small entry cannot exhaust memory."""
    inner = encode_messages([bytes(50_000)])
    twice = nested(1, inner) * 2
    bomb = nested(2, inner)
    for data in (twice, bomb):
        compressed = checked(data)[2]
        with pytest.raises(WireFormatError, match="larger"):
            sum(check_compressed(compressed, len(inner) + 10))


def test_an_empty_compressed_set_has_no_messages() -> None:
    """3: an inner set without entries is legal."""
    data = nested(1, b"") + HELLO

    assert [b"hello"] == [bytes(each.payload) for each in decode_messages(data, 0, LIMIT)]


def test_compressed_messages_are_one_entry() -> None:
    """3: one outer message, whose CRC covers the compressed bytes."""
    data = encode_messages([b"hello", b"world!"], GZIP)

    size, count, compressed = checked(data)
    assert (len(data), 0, 1) == (size, count, len(compressed))
    assert HELLO + WORLD == gzip.decompress(data[10:])
    assert zlib.crc32(data[10:]) == int.from_bytes(data[6:10], "big")
    with pytest.raises(ValueError, match="codec 2 is unknown"):
        encode_messages([], 2)


TEXTS = st.none() | st.text(max_size=20)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
PRODUCED = st.builds(ProducerRequest, TEXTS, INT32, st.binary(max_size=50))
FETCHED = st.builds(FetchRequest, TEXTS, INT32, INT64, INT32)
ANY_REQUEST = (
    PRODUCED
    | FETCHED
    | st.builds(MultiFetchRequest, st.lists(FETCHED, max_size=4).map(tuple))
    | st.builds(MultiProducerRequest, st.lists(PRODUCED, max_size=4).map(tuple))
    | st.builds(OffsetRequest, TEXTS, INT32, INT64, INT32)
    | st.builds(CreaterRequest, TEXTS, INT32, st.integers(-128, 127))
    | st.builds(DeleterRequest, TEXTS, TEXTS)
)


@given(ANY_REQUEST)
def test_what_is_encoded_is_decoded(request_: JafkaRequest) -> None:
    """11: decode(encode(x)) = x."""
    frame = encode_request(request_)

    assert len(frame) - 4 == int.from_bytes(frame[:4], "big")
    assert request_ == decode_request(frame[4:])


@given(st.binary(max_size=100))
def test_garbage_is_a_request_or_an_error(payload: bytes) -> None:
    """11: any garbage gives either requests or one clean close."""
    try:
        decode_request(payload)
    except WireFormatError:
        pass


@given(st.lists(st.binary(max_size=30), max_size=8), st.sampled_from([0, GZIP]), INT32)
def test_messages_survive(payloads: list[bytes], codec: int, offset: int) -> None:
    data = encode_messages(payloads, codec)
    found = list(decode_messages(data, offset, LIMIT))
    size, count, compressed = checked(data)

    assert payloads == [bytes(each.payload) for each in found]
    assert len(data) == size == valid_bytes(data)
    assert len(payloads) == count + sum(check_compressed(compressed, LIMIT))
    if found:
        assert offset + len(data) == found[-1].next_offset


@given(st.binary(max_size=60), st.data())
def test_a_damaged_set_is_read_or_an_error(tail: bytes, data: st.DataObject) -> None:
    good = bytearray(HELLO + entry(gzip.compress(WORLD), attributes=1) + tail)
    good[data.draw(st.integers(0, len(good) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        count = len(list(decode_messages(good, 0, LIMIT)))
    except WireFormatError:
        count = -1
    try:
        _, found, compressed = checked(bytes(good))
        total = found + sum(check_compressed(compressed, LIMIT))
    except WireFormatError:
        total = -1
    assert count == total


@st.composite
def produce_frames(draw: st.DrawFn) -> bytes:
    """A request to produce that may have bytes after its last field, and a size that is wrong."""
    topic, partition = draw(st.sampled_from(["t", "tt", "", None])), draw(st.sampled_from([0, -1]))
    frame = bytearray(
        encode_request(ProducerRequest(topic, partition, draw(st.binary(max_size=9))))
    )
    if draw(st.integers(0, 9)) == 0:
        at = draw(st.integers(4, len(frame) - 1))
        frame[at] = draw(st.integers(0, 255))
    frame += draw(st.sampled_from([b"", b"", b"", b"after"]))
    frame[:4] = (len(frame) - 4).to_bytes(4, "big")
    return bytes(frame)


@given(st.lists(produce_frames(), max_size=6))
def test_requests_to_produce_in_a_row_are_what_each_is_by_itself(frames: list[bytes]) -> None:
    alone: list[ProducerRequest | None] = []
    for frame in frames:
        try:
            alone.append(decode_request(b"\0\0" + frame[6:]))  # type: ignore[arg-type]
        except WireFormatError:
            alone.append(None)
            break
    together: list[tuple[object, ...] | None] = []
    try:
        together.extend(decode_produced(b"".join(frames)))
    except WireFormatError:
        together.append(None)

    assert alone == together
