"""Request and response headers, and framing."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.errors import LocalProtocolError, WireFormatError
from trionet.protocol import _header as header
from trionet.protocol import api_keys
from trionet.protocol._codec import ApiVersionCodec, Chunk, lookup
from trionet.protocol._header import (
    JOINED_BYTES_MAX,
    decode_request_header,
    decode_response_header,
    encode_request_header,
    encode_response_header,
    frame,
    skip_tags,
)


def codec(api_key: int, version: int) -> ApiVersionCodec:
    found = lookup(api_key, version)
    assert found is not None
    return found


PLAIN = codec(api_keys.PRODUCE, 8)
FLEXIBLE = codec(api_keys.PRODUCE, 9)


def test_header_of_version_1() -> None:
    expected = bytes.fromhex("0000 0008 0000002a 0002 6d65")

    assert encode_request_header(PLAIN, 42, "me") == expected
    assert decode_request_header(expected) == (0, 8, 42, "me", len(expected))


def test_header_of_version_2_has_the_old_client_id_and_a_tag_section() -> None:
    expected = bytes.fromhex("0000 0009 0000002a 0002 6d65 00")

    assert encode_request_header(FLEXIBLE, 42, "me") == expected
    assert decode_request_header(expected) == (0, 9, 42, "me", len(expected) - 1)
    assert skip_tags(expected, len(expected) - 1) == len(expected)


def test_client_id_may_be_null_or_empty() -> None:
    assert decode_request_header(encode_request_header(PLAIN, 1, None))[3] is None
    assert decode_request_header(encode_request_header(PLAIN, 1, ""))[3] == ""


@given(st.integers(-(2**31), 2**31 - 1), st.none() | st.text(max_size=300), st.binary(max_size=5))
def test_request_header_round_trip(
    correlation_id: int, client_id: str | None, before: bytes
) -> None:
    encoded = encode_request_header(PLAIN, correlation_id, client_id)
    expected = (0, 8, correlation_id, client_id, len(before) + len(encoded))

    assert decode_request_header(before + encoded, len(before)) == expected
    assert decode_request_header(bytearray(before + encoded), len(before)) == expected


def test_header_cut_anywhere_is_refused() -> None:
    encoded = encode_request_header(PLAIN, 1, "client")
    decode_request_header(encoded)  # so that the client id is remembered
    for end in range(len(encoded)):
        with pytest.raises(WireFormatError):
            decode_request_header(encoded[:end])


def test_cut_client_id_is_refused_though_the_rest_is_a_known_one() -> None:
    decode_request_header(encode_request_header(PLAIN, 1, "client"))
    longer = encode_request_header(PLAIN, 1, "client-7")

    with pytest.raises(WireFormatError, match="extends past the end of the frame"):
        decode_request_header(longer[:-2])


def test_client_id_of_a_negative_length_is_refused() -> None:
    with pytest.raises(WireFormatError, match="negative length: -2"):
        decode_request_header(bytes.fromhex("0000 0008 0000002a fffe"))


@pytest.mark.parametrize("kind", [bytes, bytearray])
def test_what_is_not_utf_8_in_a_client_id_is_replaced_as_by_kafka(kind: type[bytes]) -> None:
    """As of a client in C whose text is in Latin-1."""
    text = "Müller".encode("latin-1") + b"\xc3"
    frame = kind(bytes.fromhex("0000 0008 0000002a 0007") + text)

    for _ in range(2):  # the second time it is known
        assert "M\ufffdller\ufffd" == decode_request_header(frame)[3]


def test_client_id_that_becomes_longer_than_any_text_is_refused() -> None:
    """No response could name it, such as the description of its group."""
    with pytest.raises(WireFormatError, match="too long to be replaced"):
        decode_request_header(bytes.fromhex("0000 0008 0000002a 7fff") + b"\xff" * 32_767)


def test_peers_cannot_fill_the_memory_with_client_ids() -> None:
    for number in range(5000):
        decode_request_header(encode_request_header(PLAIN, 1, f"client-{number}"))
    decode_request_header(encode_request_header(PLAIN, 1, "x" * 30_000))

    assert len(header._client_ids) <= 1024
    assert max(map(len, header._client_ids)) <= 256


@pytest.mark.parametrize(
    ("section", "size"), [("00", 1), ("01 05 02 aabb", 5), ("02 00 00 8001 01 ff", 7)]
)
def test_tag_section_is_skipped(section: str, size: int) -> None:
    assert skip_tags(b"??" + bytes.fromhex(section) + b"body", 2) == 2 + size


@pytest.mark.parametrize(
    "section", ["", "01", "01 05", "01 05 02 aa", "02 05 00 05 00", "ffffffff07"]
)
def test_malformed_tag_section_is_refused(section: str) -> None:
    with pytest.raises(WireFormatError):
        skip_tags(bytes.fromhex(section), 0)


def test_request_header_that_cannot_be_encoded_is_our_mistake() -> None:
    with pytest.raises(LocalProtocolError, match="request header"):
        encode_request_header(PLAIN, 2**31, "me")
    with pytest.raises(LocalProtocolError, match="request header"):
        encode_request_header(PLAIN, 1, "x" * 2**15)


def test_response_headers() -> None:
    assert encode_response_header(PLAIN, 42) == bytes.fromhex("0000002a")
    assert encode_response_header(FLEXIBLE, 42) == bytes.fromhex("0000002a 00")
    assert decode_response_header(PLAIN, bytes.fromhex("0000002a 07")) == (42, 4)
    assert decode_response_header(FLEXIBLE, bytes.fromhex("ff 0000002a 01 05 00"), 1) == (42, 8)


def test_api_versions_responses_have_no_tag_section_in_any_version() -> None:
    for version in range(5):
        assert encode_response_header(codec(api_keys.API_VERSIONS, version), 7) == b"\0\0\0\7"


@pytest.mark.parametrize("data", ["", "0000", "0000002a", "0000002a 01 05"])
def test_cut_response_header_is_refused(data: str) -> None:
    with pytest.raises(WireFormatError, match="truncated") as raised:
        decode_response_header(FLEXIBLE, bytes.fromhex(data))
    assert isinstance(raised.value.__cause__, struct.error | IndexError)


class Range:
    """Something with a length that is sent by other means."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count


def test_ordinary_frame_is_one_bytes_object() -> None:
    chunks: list[Chunk] = [b"head", memoryview(b"bo"), bytearray(b"dy"), b""]

    assert frame(chunks) == [b"\0\0\0\x08headbody"]


def test_large_buffers_and_ranges_stay_as_they_are() -> None:
    large = memoryview(bytes(JOINED_BYTES_MAX + 1))
    ranged = Range(5)
    framed = frame([b"a", b"b", large, b"c", memoryview(b"d"), ranged, b"e"])

    assert framed[0] == struct.pack(">i", len(large) + 10) + b"ab"
    assert framed[1] is large
    assert framed[2] == b"cd"
    assert framed[3] is ranged
    assert framed[4:] == [b"e"]


def test_small_range_is_not_joined() -> None:
    ranged = Range(3)

    assert frame([b"a", ranged, b"b"]) == [b"\0\0\0\x05a", ranged, b"b"]


def test_range_may_be_the_last() -> None:
    ranged = Range(JOINED_BYTES_MAX)

    assert frame([b"a", ranged]) == [struct.pack(">i", JOINED_BYTES_MAX + 1) + b"a", ranged]


def test_empty_ranges_are_left_out() -> None:
    assert frame([b"a", Range(0), b"b"]) == [b"\0\0\0\x02ab"]


def test_empty_frame() -> None:
    assert frame([]) == [b"\0\0\0\0"]


def test_frame_longer_than_its_prefix_can_say_is_our_mistake() -> None:
    with pytest.raises(LocalProtocolError, match="2147483648 bytes"):
        frame([Range(2**31 - 1), b"x"])


@given(st.lists(st.binary(max_size=40_000), max_size=6))
def test_framing_keeps_every_byte(chunks: list[bytes]) -> None:
    body = b"".join(chunks)

    framed = frame(list(chunks))
    assert b"".join(framed) == struct.pack(">i", len(body)) + body  # type: ignore[arg-type]
