"""Frames, order and ends of connections: the rules of Jafka's Processor, over sockets."""

from __future__ import annotations

import logging
import struct

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from support.jafka_wire import ALL, JafkaPeer, connect, messages, open_peer
from trionet._util.files._descriptors import descriptor_limit
from trionet.jafka import JafkaBroker, open_jafka_broker
from trionet.jafka._broker import _server_config
from trionet.jafka._codec import decode_offsets, decode_response, encode_request
from trionet.jafka._config import JafkaConfig
from trionet.jafka._frames import JAFKA_FRAMES, JafkaDecoder
from trionet.jafka._requests import FetchRequest, OffsetRequest, Produced, ProducerRequest
from trionet.net.wire._close_reason import CloseReason
from trionet.net.wire._framing import fill_with

HELLO = messages(b"hello")
PRODUCE = encode_request(ProducerRequest("demo", 0, HELLO))
FETCH = encode_request(FetchRequest("demo", 0, 0, ALL))
OFFSETS = encode_request(OffsetRequest("demo", 0, -1, 10))
EMPTY = bytes.fromhex("00000002 0000")


def closed(broker: JafkaBroker) -> dict[CloseReason, int]:
    return broker.statistics().closed


@pytest.mark.parametrize("size", [0, -1, -(2**31)])
async def test_a_size_of_0_or_less_closes(size: int) -> None:
    """6: decided on the 4 bytes of the size."""
    async with open_jafka_broker() as broker:
        with await connect(broker) as peer:
            assert await peer.is_closed_by(struct.pack(">i", size))
        assert {CloseReason.INVALID_RECEIVE: 1} == closed(broker)


async def test_a_size_above_the_limit_closes_before_the_body() -> None:
    """6, 7: 100 passes and 101 closes when the limit is 100, on the 4 bytes of the size."""
    body = encode_request(FetchRequest("demo", 0, 0, ALL))[4:]
    async with open_jafka_broker(max_socket_request_bytes=100) as broker:
        with await connect(broker) as peer:
            await peer.send(struct.pack(">i", 100) + body.ljust(100, b"\0"))
            assert EMPTY == await peer.receive(6)
            assert await peer.is_closed_by(struct.pack(">i", 101))
        assert {CloseReason.INVALID_RECEIVE: 1} == closed(broker)


@pytest.mark.parametrize(
    "payload", ["00", "0007", "ffff", "0012 0003 00000000 ffff", "0001 0004 64"]
)
async def test_a_request_that_is_none_closes_with_a_reason(payload: str) -> None:
    """6: an unknown type, or a body that is too short."""
    async with open_jafka_broker() as broker:
        with await connect(broker) as peer, await connect(broker) as other:
            frame = bytes.fromhex(payload)
            assert await peer.is_closed_by(struct.pack(">i", len(frame)) + frame)
            assert (0, b"") == await other.fetch()
        assert 1 == closed(broker)[CloseReason.INVALID_REQUEST]


async def test_what_closed_a_connection_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "trionet")
    async with open_peer() as peer:
        assert await peer.is_closed_by(ProducerRequest("a\nb", 0, HELLO))

    assert "the name of topic 'a\\nb' is illegal" in caplog.text


async def test_bytes_after_a_body_are_ignored() -> None:
    """2, 6: of a fetch and of a produce."""
    async with open_peer() as peer:
        for frame in (PRODUCE, FETCH):
            await peer.send(struct.pack(">i", len(frame) - 4 + 7) + frame[4:] + b"ignored")

        assert HELLO == (await peer.receive_frame())[2:]


async def test_a_response_arrives_after_a_half_close() -> None:
    """6: the client ends its side after its request; the response still arrives."""
    async with open_peer() as peer:
        await peer.send(PRODUCE + FETCH)
        peer.finish()

        assert struct.pack(">ih", 2 + len(HELLO), 0) + HELLO == await peer.receive_to_end()


async def test_requests_in_one_write_have_their_responses_in_order() -> None:
    """6: four requests in one write came back as three responses in order."""
    async with open_peer() as peer:
        await peer.send(FETCH + OFFSETS + PRODUCE + FETCH)

        assert EMPTY == await peer.receive(6)
        assert bytes.fromhex("00000006 0000 00000000") == await peer.receive(10)
        assert b"\0\0" + HELLO == await peer.receive_frame()


async def test_a_hundred_produces_then_the_offset_of_all() -> None:
    """6: 100 produces followed by an offsets request: all 100 are counted."""
    async with open_peer() as peer:
        await peer.send(PRODUCE * 100 + OFFSETS)
        _, body = decode_response(await peer.receive_frame())

        assert [100 * len(HELLO), 0] == decode_offsets(body)


async def test_a_size_may_arrive_in_pieces() -> None:
    """1, 6: size and body in separate writes, and a size that dribbles in."""
    async with open_jafka_broker() as broker:
        with await connect(broker) as peer, await connect(broker) as other:
            for byte in PRODUCE[:7]:
                await peer.send(bytes([byte]))
                assert (0, b"") == await other.fetch()  # so the server has read it
            await peer.send(PRODUCE[7:])
            assert (0, HELLO) == await peer.fetch()


def requests_in(decoder: JafkaDecoder) -> list[bytes]:
    """The frames, in which requests to produce that arrived together are taken apart."""
    found: list[bytes] = []
    while decoder.frames:
        frame = bytes(decoder.frames[0])
        if not isinstance(decoder.frames.popleft(), Produced):
            frame = struct.pack(">i", len(frame)) + frame
        while frame:
            (size,) = struct.unpack_from(">i", frame)
            found.append(frame[4 : 4 + size])
            frame = frame[4 + size :]
    return found


MEDIUM = encode_request(ProducerRequest("demo", 0, messages(bytes(6000))))
#: Larger than what is read at once, so that it gets a buffer of its own if it arrives in parts.
LARGE = encode_request(ProducerRequest("demo", 0, messages(bytes(70_000))))


@given(st.data(), st.booleans())
def test_any_split_gives_the_same_requests(data: st.DataObject, fills: bool) -> None:
    """11: any split of the frames into reads gives the same requests."""
    parts = data.draw(
        st.lists(st.sampled_from([PRODUCE, FETCH, OFFSETS, MEDIUM, LARGE]), max_size=9)
    )
    stream = b"".join(parts)
    decoder = JAFKA_FRAMES.decoder(100_000)
    assert isinstance(decoder, JafkaDecoder)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    found = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        piece = stream[start:end]
        while fills and piece and decoder.wants_fill:
            piece = fill_with(piece, decoder.fill)
        decoder.receive_data(piece)
        found += requests_in(decoder)
        done = b"".join(parts)[: sum(map(len, parts[: len(found)]))]
        assert decoder.is_inside_frame == (len(done) < end)

    assert [each[4:] for each in parts] == found
    assert decoder.error is None


def test_requests_to_produce_that_arrive_together_are_one_frame() -> None:
    """They need no response; what has one is a frame of its own."""
    decoder = JafkaDecoder(1000)
    decoder.receive_data(PRODUCE * 3 + FETCH + PRODUCE + FETCH + PRODUCE * 2)
    frames = [type(each) for each in decoder.frames]

    assert [Produced, bytes, Produced, bytes, Produced] == frames
    assert [PRODUCE[4:]] * 3 == requests_in(decoder)[:3]


@pytest.mark.parametrize(
    ("size", "message"),
    [
        (0, "frame size 0 is not allowed; allowed: 1 or more"),
        (-1, "frame size -1 is negative"),
        (101, "frame size 101 is larger than 100, the limit that max.socket.request.bytes sets"),
        (100_000, "frame size 100000 is larger than 100, the limit that max.socket"),
    ],
)
def test_what_precedes_an_invalid_size_is_decoded_and_nothing_after_it(
    size: int, message: str
) -> None:
    decoder = JafkaDecoder(100)
    decoder.limit_name = "socket.request.max.bytes"  # as the channel does
    decoder.receive_data(PRODUCE + FETCH + struct.pack(">i", size)[:3])
    decoder.receive_data(struct.pack(">i", size)[3:] + FETCH)
    decoder.receive_data(FETCH)

    assert [PRODUCE[4:], FETCH[4:]] == requests_in(decoder)
    assert not decoder.is_inside_frame
    assert str(decoder.error).startswith(message)


@given(st.binary(min_size=4, max_size=40))
def test_garbage_gives_frames_or_an_error(data: bytes) -> None:
    """11: any garbage gives either requests or one clean close."""
    decoder = JafkaDecoder(1000)
    decoder.receive_data(data)
    size = int.from_bytes(data[:4], "big", signed=True)

    assert (decoder.error is not None) >= (not 0 < size <= 1000)


async def test_a_bad_one_of_requests_that_arrive_together_closes_after_those_before_it() -> None:
    """6: as if each had arrived by itself."""
    bad = encode_request(ProducerRequest("demo", 0, HELLO[:-1]))
    async with open_jafka_broker() as broker:
        with await connect(broker) as peer, await connect(broker) as other:
            assert await peer.is_closed_by(PRODUCE + PRODUCE + bad + PRODUCE)
            assert (0, HELLO * 2) == await other.fetch()


@pytest.mark.parametrize("received", [4, 10, len(PRODUCE) + 1])
async def test_requests_before_a_large_one_that_never_completes_are_handled(received: int) -> None:
    """6: as if each had arrived by itself; the end of the stream does not overtake them."""
    stream = PRODUCE * 3 + LARGE[:1000]
    async with open_jafka_broker() as broker:
        with await connect(broker) as peer, await connect(broker) as other:
            await peer.send(stream[:received])
            await other.fetch()  # so the server has read it
            await peer.send(stream[received:])
            peer.finish()
            assert b"" == await peer.receive_to_end()
            assert (0, HELLO * 3) == await other.fetch()
        assert 1 == closed(broker)[CloseReason.PEER_CLOSED_IN_FRAME]


async def test_reading_is_off_until_the_response_has_left() -> None:
    """6: the next request's bytes are not looked at before; other connections go on."""
    big = messages(*[bytes(100_000)] * 100)
    count = 20
    async with open_jafka_broker(socket_send_buffer=10_000) as broker:
        with await connect(broker) as other:
            await other.produce(big)
            assert (0, b"") == await other.fetch(len(big))  # they are there
            with await JafkaPeer.connect(other_port(broker), receive_buffer_bytes=10_000) as peer:
                await peer.send(FETCH_ALL * count)
                await peer.receive(4)
                assert (0, b"") == await other.fetch(len(big))
                assert broker.statistics().requests <= count
                rest = await peer.receive(count * (len(big) + 6) - 4)

    assert big == rest[-len(big) :]


FETCH_ALL = encode_request(FetchRequest("demo", 0, 0, 2**31 - 1))


def other_port(broker: JafkaBroker) -> int:
    return int(broker.address.rpartition(":")[2])


async def test_every_byte_is_counted() -> None:
    """8.8: the four bytes of each size, which the original overwrites."""
    async with open_jafka_broker() as broker:
        with await connect(broker) as peer:
            await peer.send(PRODUCE[:4])
            await peer.send(PRODUCE[4:] + FETCH)
            await peer.receive_frame()
            statistics = broker.statistics()

        assert len(PRODUCE + FETCH) == statistics.bytes_received
        assert 6 + len(HELLO) == statistics.bytes_sent
        assert (2, 1) == (statistics.requests, statistics.responses)


async def test_too_many_connections_are_closed_at_once() -> None:
    """8.5: rejected, instead of neither served nor closed."""
    async with open_jafka_broker(max_connections=2) as broker:
        peers = [await connect(broker) for _ in range(2)]
        for peer in peers:
            assert (0, b"") == await peer.fetch()
        with await connect(broker) as third:
            assert b"" == await third.receive_to_end()
        for peer in peers:
            assert (0, b"") == await peer.fetch()
            peer.close()


def test_connections_leave_half_of_the_descriptors_to_segments() -> None:
    assert descriptor_limit() // 2 == _server_config(JafkaConfig({})).limits.connections_max


async def test_idle_connections_are_closed_if_so_set() -> None:
    """8.6: off by default; the time is Kafka's key."""
    async with open_jafka_broker(connections_max_idle_ms=10) as broker:
        with await connect(broker) as peer:
            await peer.send(b"\0\0")
            assert b"" == await peer.receive_to_end()
        assert {CloseReason.IDLE: 1} == closed(broker)


async def test_a_stop_closes_connections_after_their_responses() -> None:
    """8.9: requests that were received get their responses, then connections are closed."""
    async with open_jafka_broker() as broker:
        peer = await connect(broker)
        assert (0, b"") == await peer.fetch()
    with peer:
        assert b"" == await peer.receive_to_end()


async def test_cancellation_leaves_no_socket() -> None:
    with trio.CancelScope() as scope:
        async with open_jafka_broker() as broker:
            peer = await connect(broker)
            scope.cancel()
            await trio.lowlevel.checkpoint()
    with peer:
        assert b"" == await peer.receive_to_end()
