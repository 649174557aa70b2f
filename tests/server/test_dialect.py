"""Protocols with other frames than Kafka's, served with the same promises."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from support.served import serving_with
from trionet.errors import InvalidReceiveError
from trionet.net.wire._close_reason import CloseReason
from trionet.net.wire._framing import Frame
from trionet.net.wire._readiness import ReadinessKind
from trionet.server import SIZE_PREFIXED, CloseConnection, Dialect, Request
from trionet.server._dialect import JOINED_BYTES_MAX

TWO_BYTES = Dialect.length_prefixed(
    lambda data: (2, int.from_bytes(data[:2], "big")) if len(data) >= 2 else None,
    lambda size: size.to_bytes(2, "big"),
)
TWO_BYTES_AND_AN_END = Dialect.length_prefixed(
    lambda data: (2, int.from_bytes(data[:2], "big")) if len(data) >= 2 else None,
    lambda size: size.to_bytes(2, "big"),
    tail=b";",
)


async def echo(request: Request) -> Frame:
    return request.payload


@pytest.mark.parametrize("size", [0, 1, JOINED_BYTES_MAX, JOINED_BYTES_MAX + 1])
@pytest.mark.parametrize(
    ("dialect", "head_bytes", "tail"),
    [(SIZE_PREFIXED, 4, b""), (TWO_BYTES, 2, b""), (TWO_BYTES_AND_AN_END, 2, b";")],
)
def test_a_response_is_framed_as_a_request_is(
    dialect: Dialect, head_bytes: int, tail: bytes, size: int
) -> None:
    payload = bytearray(b"x" * size)

    chunks = dialect.frame(payload)

    framed = b"".join(map(bytes, chunks))  # type: ignore[arg-type]  # no file among them
    assert size.to_bytes(head_bytes, "big") + payload + tail == framed
    decoder = dialect.decoder(size)
    decoder.receive_data(framed)
    assert [payload] == list(decoder.frames)


def test_a_large_response_is_not_copied() -> None:
    payload = bytes(JOINED_BYTES_MAX + 1)

    assert payload is TWO_BYTES_AND_AN_END.frame(payload)[1]


async def test_another_length_prefix_is_served_like_kafkas(kind: ReadinessKind) -> None:
    """In order, one at a time, whatever came together."""
    async with serving_with(echo, kind, dialect=TWO_BYTES) as rig:
        peer = await rig.connect()
        await peer.send(b"\0\3one\0\0\0\3t")
        assert b"\0\3one\0\0" == await peer.receive(7)
        await peer.send(b"wo")
        assert b"\0\3two" == await peer.receive(5)

        large = b"\xff\xff" + bytes(65535)
        await peer.send(large + b"\0\1x")
        assert large + b"\0\1x" == await peer.receive(65540)


@pytest.mark.parametrize(
    ("sent", "detail"),
    [
        (b"\0\1a;\0\x0b", "frame size 11 is larger than 10"),
        (b"\0\1a;\0\1a\0", "a frame of 1 bytes ends with b'\\x00', not with b';'"),
    ],
)
async def test_what_is_no_frame_closes_its_connection(
    kind: ReadinessKind, sent: bytes, detail: str
) -> None:
    """X2: after the responses to what came before it."""
    async with serving_with(
        echo, kind, dialect=TWO_BYTES_AND_AN_END, socket_request_max_bytes=10
    ) as rig:
        peer, other = await rig.connect(), await rig.connect()
        await peer.send(sent)

        assert b"\0\1a;" == await peer.receive_to_end()
        closed = await rig.last_closed()
        assert CloseReason.INVALID_RECEIVE is closed.reason
        assert detail in closed.detail
        await other.send(b"\0\1b;")
        assert b"\0\1b;" == await other.receive(4)


async def test_a_peer_that_leaves_in_a_frame_is_distinguished(kind: ReadinessKind) -> None:
    async with serving_with(echo, kind, dialect=TWO_BYTES) as rig:
        for sent, reason in [
            (b"\0\1a", CloseReason.PEER_CLOSED),
            (b"\0", CloseReason.PEER_CLOSED_IN_FRAME),
            (b"\0\5a", CloseReason.PEER_CLOSED_IN_FRAME),
        ]:
            peer = await rig.connect()
            await peer.send(sent)
            peer.finish()
            await peer.receive_to_end()
            assert reason is (await rig.last_closed()).reason


async def test_a_response_whose_head_cannot_be_written_closes_its_connection(
    kind: ReadinessKind,
) -> None:
    async def too_much(request: Request) -> bytes:
        return bytes(65536)

    async with serving_with(too_much, kind, dialect=TWO_BYTES) as rig:
        peer = await rig.connect()
        await peer.send(b"\0\0")

        assert b"" == await peer.receive_to_end()
        closed = await rig.last_closed()
        assert CloseReason.HANDLER_FAILED is closed.reason
        assert "int too big to convert" in closed.detail


async def test_large_requests_take_of_the_memory_that_all_share(kind: ReadinessKind) -> None:
    """KIP-72: as those of Kafka's own frames do, and give it back with the answer."""
    may_go_on = trio.Event()

    async def hold(request: Request) -> bytes | CloseConnection:
        await may_go_on.wait()
        return b"" if request.payload[0] else CloseConnection()

    async with serving_with(
        hold,
        kind,
        dialect=TWO_BYTES_AND_AN_END,
        num_io_threads=3,
        queued_max_request_bytes=65535,
        socket_request_max_bytes=65535,
    ) as rig:
        pool = rig.served.server.pool
        assert pool is not None
        peers = [await rig.connect() for _ in range(3)]
        for number, peer in enumerate(peers):
            await peer.send(b"\xea\x60" + bytes([number]) * 60_000 + b";")
        await wait_all_tasks_blocked()
        assert 2 == rig.served.statistics().requests
        assert 120_000 == pool.used

        may_go_on.set()
        await wait_all_tasks_blocked()

        assert 3 == rig.served.statistics().requests
        assert 0 == pool.used
        assert {CloseReason.CLOSE_RESPONSE: 1} == rig.reasons()
        await peers[1].send(b"\xea\x60" + bytes(60_000) + b"?")
        await wait_all_tasks_blocked()
        assert CloseReason.INVALID_RECEIVE is (await rig.last_closed()).reason
        assert 0 == pool.used


class Lines:
    """A decoder of one's own, for a protocol without sizes: frames end with a line feed."""

    wants_fill = False
    size = 0

    def __init__(self, frame_bytes_max: int) -> None:
        self.frame_bytes_max = frame_bytes_max
        self.frames: deque[Frame] = deque()
        self.error: InvalidReceiveError | None = None
        self._rest = b""

    @property
    def is_inside_frame(self) -> bool:
        return bool(self._rest)

    def receive_data(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        self.frames += lines
        if len(self._rest) > self.frame_bytes_max:
            self.error = InvalidReceiveError("a line without an end")

    def fill(self, read_into: Callable[[memoryview], int]) -> int:
        raise NotImplementedError  # it never wants to


async def test_a_protocol_without_sizes_brings_its_own_decoder(kind: ReadinessKind) -> None:
    dialect = Dialect(Lines, lambda payload: [bytes(payload) + b"\n"])
    async with serving_with(echo, kind, dialect=dialect, socket_request_max_bytes=100) as rig:
        peer = await rig.connect()
        await peer.send(b"one\ntwo\nthr")
        assert b"one\ntwo\n" == await peer.receive(8)
        await peer.send(b"ee\n" + bytes(101))

        assert b"three\n" == await peer.receive_to_end()
        assert CloseReason.INVALID_RECEIVE is (await rig.last_closed()).reason
