"""Peers that speak by hand: over what stream, in which order, and when it ends."""

from __future__ import annotations

import socket

import pytest
import trio
import trio.testing

import trionet
from support.calls import batch, produce_request
from support.wire import tcp_pair
from trionet.protocol._header import decode_request_header, frame
from trionet.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from trionet.protocol.messages.metadata import MetadataRequest
from trionet.testing import BlockingRawPeer, RawPeer, ThreadedBroker, open_raw_peer, raw_peer
from trionet.testing._wire_peer import codec_for, encode_request, host_and_port

METADATA = MetadataRequest(topics=[])


async def test_a_peer_speaks_over_any_stream() -> None:
    mine, theirs = trio.testing.memory_stream_pair()
    peer = RawPeer(mine, "me")
    request = ApiVersionsRequest(client_software_name="x", client_software_version="1")
    codec = codec_for(request, 3)

    await peer.send(request, 3)
    sent = bytes(await theirs.receive_some())
    key, version, correlation_id, client_id, _ = decode_request_header(sent, 4)
    chunks: list[bytes] = [correlation_id.to_bytes(4, "big")]
    codec.encode_response(ApiVersionsResponse(throttle_time_ms=7), chunks)  # type: ignore[arg-type]
    answer = b"".join(frame(chunks))  # type: ignore[arg-type]
    for position in range(len(answer)):
        await theirs.send_all(answer[position : position + 1])
    received = await peer.receive()

    assert (18, 3, "me") == (key, version, client_id)
    assert len(sent) - 4 == int.from_bytes(sent[:4], "big")
    assert ApiVersionsResponse(throttle_time_ms=7) == received


async def test_a_peer_in_trio_speaks_to_a_broker() -> None:
    async with (
        trionet.open_broker() as broker,
        open_raw_peer(broker.bootstrap_servers) as peer,
    ):
        await trionet.testing.control(broker).create_topic("t")
        await peer.send_unanswered(produce_request("t", batch(b"a"), acks=0), 12)
        await peer.send(METADATA, 9)
        await peer.send(METADATA, 12)

        assert [1, 1] == [len((await peer.receive()).brokers) for _ in range(2)]

        await peer.send_frame(b"\x7f\xff\0\0\0\0\0\1\xff\xff")
        assert b"" == await peer.receive_to_end()
        with pytest.raises(EOFError):
            await peer.receive_frame()


def test_a_peer_that_blocks_speaks_to_a_broker(trionet_broker: ThreadedBroker) -> None:
    trionet_broker.create_topic("t")
    with raw_peer(trionet_broker.bootstrap_servers) as peer:
        peer.send_unanswered(produce_request("t", batch(b"a"), acks=0), 12)
        peer.send(METADATA, 9)
        peer.send(METADATA, 12)

        assert [1, 1] == [len(peer.receive().brokers) for _ in range(2)]

        peer.send_bytes(encode_request(METADATA, 12, correlation_id=77)[:-1])
        peer.send_bytes(b"\0")
        assert b"\0\0\0\x4d" == peer.receive_frame()[:4]

        peer.send_frame(b"\x7f\xff\0\0\0\0\0\1\xff\xff")
        assert b"" == peer.receive_to_end()
        with pytest.raises(EOFError):
            peer.receive_frame()


def test_a_connection_that_ends_is_the_end_of_the_stream() -> None:
    mine, theirs = tcp_pair()
    with mine:
        theirs.close()
        peer = BlockingRawPeer(mine)
        with pytest.raises(EOFError):
            peer.call(METADATA, 12)
        with pytest.raises(EOFError):
            peer.send_bytes(bytes(100_000_000))


async def test_a_stream_that_breaks_is_its_end() -> None:
    mine, theirs = trio.testing.memory_stream_pair()
    await theirs.aclose()
    peer = RawPeer(mine)

    with pytest.raises(EOFError):
        await peer.send(METADATA, 12)


async def test_each_receive_is_a_checkpoint() -> None:
    mine, theirs = trio.testing.memory_stream_pair()
    peer = RawPeer(mine)
    await theirs.send_all(b"\0\0\0\1a\0\0\0\1b")
    await peer.receive_frame()

    with trio.testing.assert_checkpoints():
        assert b"b" == await peer.receive_frame()


@pytest.mark.parametrize(
    ("request_", "version", "text"),
    [
        (METADATA, 99, "MetadataRequest has no version 99; allowed: 0 to 13"),
        (ApiVersionsResponse(), 3, "ApiVersionsResponse is not a request"),
    ],
)
def test_what_is_no_request_is_reported(request_: MetadataRequest, version: int, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        encode_request(request_, version)


def test_an_address_has_two_parts() -> None:
    assert ("127.0.0.1", 9092) == host_and_port("127.0.0.1:9092")
    assert ("::1", 9092) == host_and_port("[::1]:9092")


def test_no_listener_is_an_error_of_the_system() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(OSError, match="refused"), raw_peer(f"127.0.0.1:{port}"):
        pass
