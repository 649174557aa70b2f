"""Each fault ends its own channel, with its own reason, and disturbs no other."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from support.ranges import RangedFile
from support.selecting import Link, Selecting, selecting
from support.transports import AlteredTransport
from support.wire import Peer, frame, tcp_pair
from trionet.errors import LocalProtocolError
from trionet.net._authenticator import Step
from trionet.net._channel import Channel
from trionet.net._selector import EMPTY_POLLS_BEFORE_PARK, Selector
from trionet.net.wire._close_reason import CloseReason
from trionet.net.wire._framing import Frame
from trionet.net.wire._readiness import READ, ReadinessKind
from trionet.net.wire._transmission import FileRange, Send

MEGABYTE = 1024 * 1024


@asynccontextmanager
async def undisturbed(link: Link) -> AsyncIterator[Selecting]:
    """A selector with one healthy connection, which must work at the end (P60)."""
    async with selecting(link) as rig:
        healthy, peer = rig.connect(id="healthy")
        yield rig
        await peer.send_frames(b"still there?")
        assert b"still there?" == await rig.receive(healthy)
        assert rig.selector.send(healthy, Send([frame(b"yes")]))
        assert b"yes" == await peer.receive_frame()
        assert [healthy] == list(rig.selector.channels)


@pytest.mark.parametrize(
    "size", [b"\xff\xff\xff\xff", b"\x80\0\0\0", b"\0\0\0\x0b", b"\x7f\xff\xff\xff", b"GET "]
)
async def test_impossible_size_closes_before_any_byte_of_the_body(link: Link, size: bytes) -> None:
    """X2, X3, P8: negative or above the limit of 10; "GET " is 1.2 GB."""
    async with undisturbed(link) as rig:
        channel, peer = rig.connect(frame_bytes_max=10)
        await peer.send(size)

        assert CloseReason.INVALID_RECEIVE is await rig.disconnected(channel)
        assert b"" == await peer.receive_to_end()
        assert "frame size" in channel.close_detail


async def test_frame_of_the_largest_size_is_welcome(link: Link) -> None:
    """X3."""
    async with undisturbed(link) as rig:
        channel, peer = rig.connect(frame_bytes_max=10)
        await peer.send_frames(b"0123456789")

        assert b"0123456789" == await rig.receive(channel)
        rig.selector.close(channel)


@pytest.mark.parametrize(
    ("cut", "reason"),
    [
        (0, CloseReason.PEER_CLOSED),
        (1, CloseReason.PEER_CLOSED_IN_FRAME),
        (4, CloseReason.PEER_CLOSED_IN_FRAME),
        (6, CloseReason.PEER_CLOSED_IN_FRAME),
    ],
)
async def test_end_of_the_stream_shows_whether_a_frame_was_cut(
    link: Link, cut: int, reason: CloseReason
) -> None:
    """X4, S25: nothing is delivered."""
    async with undisturbed(link) as rig:
        channel, peer = rig.connect()
        await peer.send(frame(b"abc")[:cut])
        peer.close()

        assert reason is await rig.disconnected(channel)


async def test_reset_by_the_peer(link: Link) -> None:
    async with undisturbed(link) as rig:
        channel, peer = rig.connect()
        peer.reset()

        assert CloseReason.PEER_RESET is await rig.disconnected(channel)


async def test_frames_that_were_read_before_a_reset_are_delivered(link: Link) -> None:
    """P31: as long as nothing is sent to the peer."""
    async with undisturbed(link) as rig:
        channel, peer = rig.connect()
        await peer.send_frames(b"1", b"2", b"3")
        assert b"1" == await rig.receive(channel)
        peer.reset()

        assert b"2" == await rig.receive(channel)
        assert b"3" == await rig.receive(channel)
        assert CloseReason.PEER_RESET is await rig.disconnected(channel)


async def test_poller_closes_a_muted_channel_when_its_peer_resets() -> None:
    """A hang-up is reported whatever the interest: kept, the channel would make the loop spin."""
    async with undisturbed("poller") as rig:
        channel, peer = rig.connect()
        rig.selector.mute(channel)
        peer.reset()

        assert CloseReason.PEER_RESET is await rig.disconnected(channel)


async def test_poller_closes_a_channel_that_is_not_read_when_its_peer_resets() -> None:
    """As above, while the selector pauses."""
    async with undisturbed("poller") as rig:
        channel, peer = rig.connect()
        rig.selector.pause_reading()
        assert await rig.is_quiet()
        peer.reset()

        assert CloseReason.PEER_RESET is await rig.disconnected(channel)
        rig.selector.resume_reading()


async def test_socket_backend_closes_a_muted_channel_with_the_response() -> None:
    """It sees no hang-up of a channel that it does not read; the response finds out, or the read
    after it."""
    async with undisturbed("socket") as rig:
        channel, peer = rig.connect()
        await peer.send_frames(b"a")
        await rig.receive(channel)
        rig.selector.mute(channel)
        peer.reset()
        assert await rig.is_quiet()
        assert channel.is_open

        assert not rig.selector.send(channel, Send([frame(b"answer")]))

        assert CloseReason.SEND_FAILED is await rig.disconnected(channel)


async def test_a_thousand_resets_of_muted_channels_cost_a_few_polls_each() -> None:
    """The poller drops each at once and is idle afterwards; counted in polls, not in time."""
    polls_per_reset = 1 + EMPTY_POLLS_BEFORE_PARK + 1
    async with undisturbed("poller") as rig:
        pairs = [rig.connect() for _ in range(1000)]
        for channel, _ in pairs:
            rig.selector.mute(channel)
        gone = []

        async with trio.open_nursery() as nursery:

            async def drop() -> None:
                while True:
                    gone.extend((await rig.poll()).disconnected)

            nursery.start_soon(drop)
            for _, peer in pairs:
                peer.reset()
                await trio.lowlevel.checkpoint()
            await wait_all_tasks_blocked()
            assert rig.readiness.polls <= 1000 * polls_per_reset + polls_per_reset
            polls = rig.readiness.polls
            await wait_all_tasks_blocked(0.005)
            assert polls == rig.readiness.polls
            nursery.cancel_scope.cancel()

        assert {channel for channel, _ in pairs} == set(gone)
        assert 1000 == len(gone)
        assert {CloseReason.PEER_RESET} == {channel.close_reason for channel in gone}


async def test_response_to_a_peer_that_is_gone_fails(link: Link) -> None:
    """P39: at the latest the second write meets the reset that the first one provoked."""
    async with undisturbed(link) as rig:
        channel, peer = rig.connect()
        rig.selector.mute(channel)
        peer.close()

        rig.selector.send(channel, Send([frame(b"provokes the reset")]))
        await wait_all_tasks_blocked()
        if channel.is_open:
            rig.selector.send(channel, Send([frame(b"meets it")]))

        assert CloseReason.SEND_FAILED is await rig.disconnected(channel)


@pytest.mark.parametrize("how", ["close", "reset"])
async def test_peer_that_goes_in_the_middle_of_a_send(link: Link, how: str) -> None:
    """P29, P44: the Send is not reported complete, the channel is gone."""
    async with undisturbed(link) as rig:
        channel, peer = rig.connect()
        rig.selector.mute(channel)
        assert not rig.selector.send(channel, Send([frame(bytes(20 * MEGABYTE))]))
        await peer.receive(10)
        getattr(peer, how)()

        result = await rig.poll()

        assert [] == result.completed_sends
        assert [channel] == result.disconnected
        assert CloseReason.SEND_FAILED is channel.close_reason


async def test_second_send_raises_and_closes_the_channel(link: Link) -> None:
    """S2, S3: the next poll reports it; nothing of the second one reaches the peer."""
    async with undisturbed(link) as rig:
        channel, peer = rig.connect()
        first = frame(b"1" * 20 * MEGABYTE)
        assert not rig.selector.send(channel, Send([first]))

        with pytest.raises(LocalProtocolError, match="already has a Send"):
            rig.selector.send(channel, Send([frame(b"2")]))

        assert CloseReason.SECOND_SEND is await rig.disconnected(channel)
        received = await peer.receive_to_end()
        assert len(received) < len(first)
        assert first.startswith(received)


async def test_send_that_was_written_before_raises_and_closes_the_channel(
    link: Link,
) -> None:
    async with undisturbed(link) as rig:
        channel, peer = rig.connect()
        send = Send([frame(b"once")])
        assert rig.selector.send(channel, send)

        with pytest.raises(LocalProtocolError, match="complete"):
            rig.selector.send(channel, send)

        assert CloseReason.ERROR is await rig.disconnected(channel)
        assert frame(b"once") == await peer.receive_to_end()


async def test_file_that_is_shorter_than_promised_ends_the_channel(
    link: Link, tmp_path: Path
) -> None:
    async with undisturbed(link) as rig:
        channel, peer = rig.connect()
        file = RangedFile.holding(tmp_path, b"0123456789")

        assert not rig.selector.send(channel, Send([b"\0\0\0\x14", FileRange(file, 0, 20)]))

        assert CloseReason.SEND_FAILED is await rig.disconnected(channel)
        assert "past the end of its file" in channel.close_detail
        assert b"\0\0\0\x140123456789" == await peer.receive_to_end()


async def test_file_that_was_closed_meanwhile_ends_the_channel(link: Link, tmp_path: Path) -> None:
    async with undisturbed(link) as rig:
        channel, _ = rig.connect()
        file = RangedFile.holding(tmp_path, b"0123456789")
        file.close()

        assert not rig.selector.send(channel, Send([b"\0\0\0\x0a", FileRange(file, 0, 10)]))

        assert CloseReason.SEND_FAILED is await rig.disconnected(channel)


async def test_file_that_is_cut_during_the_send_ends_the_channel(
    link: Link, tmp_path: Path
) -> None:
    path = tmp_path / "segment"
    path.write_bytes(bytes(20 * MEGABYTE))
    async with undisturbed(link) as rig, trio.open_nursery() as nursery:
        channel, peer = rig.connect()
        file = RangedFile(path)
        assert not rig.selector.send(channel, Send([FileRange(file, 0, 20 * MEGABYTE)]))
        path.write_bytes(b"")
        nursery.start_soon(peer.receive_to_end)

        assert CloseReason.SEND_FAILED is await rig.disconnected(channel)


class Broken(AlteredTransport):
    """A transport with a bug."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(sock)

        def fail(*_: object) -> int:
            raise ZeroDivisionError("bug")

        self.write = fail
        self.read = self.read_into = fail  # type: ignore[assignment]


async def test_readiness_without_data_is_no_fault(link: Link) -> None:
    """Spurious: somebody else has read it, or the kernel changed its mind."""
    async with undisturbed(link) as rig:
        channel, peer = rig.connect()
        rig.readiness.spurious = [(channel.fd, READ)]

        assert (await rig.selector.poll()).is_empty
        assert channel.is_open

        await peer.send_frames(b"a")
        assert b"a" == await rig.receive(channel)
        rig.selector.close(channel)


async def test_bug_in_a_read_ends_the_channel_and_is_reported(
    kind: ReadinessKind, caplog: pytest.LogCaptureFixture
) -> None:
    async with undisturbed(kind) as rig:
        channel, peer = rig.connect(transport=Broken)
        await peer.send_frames(b"a")

        assert CloseReason.ERROR is await rig.disconnected(channel)
        assert "ZeroDivisionError" in channel.close_detail
        assert f"unexpected error on {channel.id}; closing it" in caplog.text


async def test_bug_in_a_send_ends_the_channel_and_is_reported(kind: ReadinessKind) -> None:
    told = []
    async with undisturbed(kind) as rig:
        rig.selector._steps._on_error = lambda channel, error: told.append((channel, str(error)))
        channel, _ = rig.connect(transport=Broken)

        assert not rig.selector.send(channel, Send([frame(b"a")]))

        assert CloseReason.ERROR is await rig.disconnected(channel)
        assert [(channel, "bug")] == told


async def test_owner_hears_of_bugs_in_its_own_way(kind: ReadinessKind) -> None:
    told = []
    async with selecting(kind) as rig:
        selector = Selector(rig.readiness, lambda channel, error: told.append((channel, error)))
        rig.selector, before = selector, rig.selector
        channel, peer = rig.connect(transport=Broken)
        await peer.send_frames(b"a")

        assert CloseReason.ERROR is await rig.disconnected(channel)
        assert [channel] == [teller for teller, _ in told]
        rig.selector = before


async def test_channel_that_the_backend_has_lost_ends_with_its_next_send(
    link: Link,
) -> None:
    """P38: a cancelled key. It is reported, although it cannot be unregistered any more."""
    async with undisturbed(link) as rig:
        channel, peer = rig.connect()
        rig.readiness.unregister(channel.fd)

        assert not rig.selector.send(channel, Send([frame(bytes(20 * MEGABYTE))]))

        result = await rig.poll()
        assert [channel] == result.disconnected
        assert not channel.is_open
        await peer.receive_to_end()


async def test_channel_that_the_backend_refuses_when_data_is_unwanted_ends(
    link: Link,
) -> None:
    async with undisturbed(link) as rig:
        channel, peer = rig.connect()
        other, other_peer = rig.connect()
        rig.selector.mute(channel)
        rig.readiness.refused = channel.fd
        await peer.send_frames(b"a")
        await other_peer.send_frames(b"b")

        seen: list[tuple[Channel, Frame]] = []
        while channel.is_open or not seen:
            seen += (await rig.poll()).completed_receives

        assert [(other, b"b")] == seen
        assert CloseReason.PEER_RESET is channel.close_reason
        rig.selector.close(other)


async def test_channel_that_the_backend_refuses_after_a_pause_ends(link: Link) -> None:
    async with undisturbed(link) as rig:
        channel, peer = rig.connect()
        other, other_peer = rig.connect()
        rig.selector.pause_reading()
        await peer.send_frames(b"a")
        await other_peer.send_frames(b"b")
        while channel.interest or other.interest:
            await rig.selector.poll()
        rig.readiness.refused = channel.fd

        rig.selector.resume_reading()

        assert not channel.is_open
        result = await rig.poll()
        assert [channel] == result.disconnected
        seen = result.completed_receives or (await rig.poll()).completed_receives
        assert [(other, b"b")] == seen
        rig.selector.close(other)


async def test_failing_poll_loses_nothing(link: Link) -> None:
    """P51: what was staged, and what was not told yet, comes with the next poll."""
    async with undisturbed(link) as rig:
        channel, peer = rig.connect()
        gone, _ = rig.connect()
        await peer.send_frames(b"1", b"2")
        assert b"1" == await rig.receive(channel)
        rig.selector.disconnect(gone, CloseReason.IDLE)
        rig.readiness.fail_once(OSError("no memory for events"))

        with pytest.raises(OSError, match="no memory"):
            await rig.selector.poll()
        result = await rig.selector.poll()

        assert [(channel, b"2")] == result.completed_receives
        assert [gone] == result.disconnected
        rig.selector.close(channel)


async def test_several_channels_may_end_in_one_poll(link: Link) -> None:
    async with undisturbed(link) as rig:
        pairs = [rig.connect(frame_bytes_max=10) for _ in range(3)]
        await pairs[0][1].send(b"\xff\xff\xff\xff")
        pairs[1][1].reset()
        pairs[2][1].close()
        await wait_all_tasks_blocked()

        result = await rig.poll()

        assert [channel for channel, _ in pairs] == sorted(
            result.disconnected, key=lambda channel: channel.id
        )
        assert [
            CloseReason.INVALID_RECEIVE,
            CloseReason.PEER_RESET,
            CloseReason.PEER_CLOSED,
        ] == [channel.close_reason for channel, _ in pairs]


async def test_closed_channel_drops_its_staged_frames(link: Link) -> None:
    """KAFKA-6529: a failed Send drops the outstanding frames, and nothing keeps the channel."""
    async with undisturbed(link) as rig:
        channel, peer = rig.connect()
        await peer.send_frames(b"1", b"2", b"3")
        assert b"1" == await rig.receive(channel)

        rig.selector.disconnect(channel, CloseReason.SEND_FAILED)

        assert CloseReason.SEND_FAILED is await rig.disconnected(channel)
        assert not channel.staged


class Chatty:
    """An authenticator that has a response to every frame, and is never content."""

    frame_bytes_max = 100
    is_complete = False
    is_reauthenticating = False

    def receive(self, *_: object) -> Step:
        return Step(send=Send([frame(b"challenge")]))


async def test_a_peer_that_resets_during_the_send_of_a_handshake_is_not_read(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its next frame would begin a second Send, which is an error of ours.

    Only an epoll reports a hang-up of a socket that is watched for writing.
    """

    def refuse(_: object) -> int:
        raise BlockingIOError

    chatty: Any = Chatty()
    near, far = tcp_pair()
    with near, Peer(far) as peer:
        transport = AlteredTransport(near)
        transport.write = refuse
        async with selecting("poller") as rig:
            channel = Channel("c", transport, 100, authenticator=chatty)
            rig.selector.register(channel)
            await peer.send_frames(b"first")
            with trio.move_on_after(0.01):
                await rig.poll()
            assert channel.send is not None
            await peer.send_frames(b"second")
            peer.reset()

            assert await rig.disconnected(channel) in {
                CloseReason.PEER_RESET,
                CloseReason.SEND_FAILED,
            }
            assert "unexpected" not in caplog.text
            assert "Send in progress" not in channel.close_detail
