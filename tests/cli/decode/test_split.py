"""What raw bytes are taken for, and how little of a pipe it takes to know."""

from __future__ import annotations

import pytest

from support.calls import batch
from support.decoding import framed, request, response
from trionet.cli.decode._sources import Kind
from trionet.cli.decode._split import recognise
from trionet.protocol._wire import Message
from trionet.protocol.api_keys import API_VERSIONS, METADATA, PRODUCE
from trionet.protocol.messages.api_versions import ApiVersionsRequest
from trionet.protocol.messages.metadata import MetadataRequest, MetadataResponse
from trionet.protocol.messages.produce import ProduceRequest, ProduceResponse

ASKED = request(MetadataRequest(topics=None), METADATA, 12)
ANSWER = response(MetadataResponse(), METADATA, 12)
OLD_MESSAGE = bytes.fromhex("0000000000000000 0000000e 00000000 01 00 ffffffff ffffffff")


def kind_of(data: bytes, response_key: int | None = None) -> Kind:
    return recognise(lambda count: data[:count], response_key)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (framed(ASKED), Kind.FRAMES),
        (framed(ASKED) * 3, Kind.FRAMES),
        (framed(ANSWER), Kind.FRAMES),
        (framed(ASKED)[:-3], Kind.FRAMES),
        (framed(bytes(100)), Kind.FRAMES),
        (ASKED, Kind.BARE),
        (ASKED[:-1], Kind.BARE),
        (batch(b"a"), Kind.BATCHES),
        (batch(b"a", base_offset=2**40), Kind.BATCHES),
        (batch(b"a" * 100)[:-5], Kind.BATCHES),
        (batch(b"a") + b"garbage", Kind.BATCHES),
        (OLD_MESSAGE, Kind.BATCHES),
        (b"", Kind.FRAMES),
        (b"\xff" * 30, Kind.FRAMES),
    ],
)
def test_bytes_are_recognised(data: bytes, kind: Kind) -> None:
    assert kind is kind_of(data)


@pytest.mark.parametrize("version", range(3, 14))
def test_a_produce_request_without_its_size_is_no_short_frame(version: int) -> None:
    """Its API key and version, read as a size, are a small one."""
    message: Message = ProduceRequest(timeout_ms=1000)

    assert Kind.BARE is kind_of(request(message, PRODUCE, version, 0))


def test_a_response_without_its_size_is_recognised_by_its_api() -> None:
    assert Kind.BARE is kind_of(ANSWER, METADATA)
    assert Kind.FRAMES is kind_of(framed(ANSWER), METADATA)
    assert Kind.BARE is kind_of(response(ProduceResponse(), PRODUCE, 9, 1), PRODUCE)


def test_a_pipe_is_not_read_beyond_its_first_request() -> None:
    first = framed(request(ApiVersionsRequest(), API_VERSIONS, 0))
    asked_for = []

    def peek(count: int) -> bytes:
        asked_for.append(count)
        return (first * 2)[:count]

    assert Kind.FRAMES is recognise(peek, None)
    assert len(first) == max(asked_for)
