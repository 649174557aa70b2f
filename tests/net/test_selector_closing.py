"""A peer that has gone: what it had sent is still handed out, a frame a poll, and then its end.

(Kafka: Selector.closingChannels, KAFKA-6529.) The same over both backends, plain and under TLS.
"""

from __future__ import annotations

import random
import socket

import pytest
from trio.testing import wait_all_tasks_blocked

from support.selecting import FRAME_BYTES_MAX, Link, Selecting, selecting
from support.transports import AlteredTransport
from support.wire import Peer, frame
from trionet.net._channel import Channel
from trionet.net.wire._close_reason import CloseReason
from trionet.net.wire._framing import Frame
from trionet.net.wire._readiness import ReadinessKind
from trionet.net.wire._transmission import Send

LARGE = frame(bytes(20 * 1024 * 1024))
# After the first read of 4096 bytes: these are in the socket when the peer goes.
MANY = [b"%d" % number + bytes(1000) for number in range(20)]


class Dry(AlteredTransport):
    """A socket that has nothing more, and does not say that it never will."""

    def go_dry(self, after: int = 0) -> None:
        """From now on there is nothing, or nothing after so many reads into a large frame."""
        left = after

        def read(bytes_max: int, /) -> bytes:
            raise BlockingIOError(f"not one of {bytes_max} bytes")

        def read_into(buffer: memoryview, /) -> int:
            nonlocal left
            if not left:
                raise BlockingIOError(f"not one of {len(buffer)} bytes")
            left -= 1
            return self.plaintext.read_into(buffer[:1000])

        self.read, self.read_into = read, read_into


async def test_a_closing_channel_ends_when_its_socket_has_nothing_more(
    kind: ReadinessKind,
) -> None:
    """Nothing is awaited of a peer that has gone: what is not there now never comes."""
    made: list[Dry] = []

    def transport(sock: socket.socket) -> Dry:
        made.append(Dry(sock))
        return made[-1]

    async with selecting(kind) as rig:
        channel, peer = rig.connect(transport=transport)
        await peer.send_frames(b"1", b"2")
        assert b"1" == await rig.receive(channel)
        made[0].go_dry()
        rig.selector._steps.begin_closing(channel, CloseReason.PEER_RESET, "it is gone")

        assert [b"2"] == await received_to_end(rig, channel)
        assert (CloseReason.PEER_RESET, "it is gone") == (
            channel.close_reason,
            channel.close_detail,
        )


@pytest.mark.parametrize("reads", [0, 1, 2])
async def test_a_closing_channel_ends_inside_a_large_frame_of_which_nothing_more_comes(
    kind: ReadinessKind, reads: int
) -> None:
    made: list[Dry] = []

    def transport(sock: socket.socket) -> Dry:
        made.append(Dry(sock))
        return made[-1]

    async with selecting(kind) as rig:
        channel, peer = rig.connect(transport=transport)
        await peer.send(frame(b"1") + frame(bytes(100_000))[:50_000])
        assert b"1" == await rig.receive(channel)
        before = channel.bytes_received
        made[0].go_dry(after=reads)
        rig.selector._steps.begin_closing(channel, CloseReason.PEER_RESET, "it is gone")

        assert [] == await received_to_end(rig, channel)
        assert before + reads * 1000 == channel.bytes_received
        assert (CloseReason.PEER_RESET, "it is gone") == (
            channel.close_reason,
            channel.close_detail,
        )


async def received_to_end(rig: Selecting, channel: Channel) -> list[Frame]:
    """What is handed out until the channel is reported as disconnected."""
    received: list[Frame] = []
    while True:
        result = await rig.poll()
        assert len(result.completed_receives) <= 1
        assert not result.completed_receives or not result.disconnected
        received += [payload for _, payload in result.completed_receives]
        if result.disconnected:
            assert [channel] == result.disconnected
            return received


async def received_one_by_one(rig: Selecting, channel: Channel) -> list[Frame]:
    """The same of an owner that mutes the channel until it has dealt with what came."""
    received: list[Frame] = []
    while True:
        result = await rig.poll()
        for _, payload in result.completed_receives:
            received.append(payload)
            rig.selector.mute(channel)
            assert await rig.is_quiet()
            rig.selector.unmute(channel)
        if result.disconnected:
            return received


async def test_a_response_before_a_reset_arrives_though_our_send_is_cut_off(link: Link) -> None:
    """One event tells of both: read first, then write (Kafka: Selector.pollSelectionKeys)."""
    async with selecting(link) as rig:
        channel, peer = rig.connect()
        assert not rig.selector.send(channel, Send([LARGE]))
        await peer.send_frames(b"response", b"another")
        peer.reset()

        assert [b"response", b"another"] == await received_to_end(rig, channel)
        assert CloseReason.SEND_FAILED is channel.close_reason


async def test_responses_that_arrived_outlive_a_send_that_fails_at_once(link: Link) -> None:
    async with selecting(link) as rig:
        channel, peer = rig.connect()
        await peer.send_frames(*MANY)
        assert MANY[0] == await rig.receive(channel)
        peer.reset()
        await wait_all_tasks_blocked()

        assert not rig.selector.send(channel, Send([LARGE]))
        assert not rig.selector.send(channel, Send([frame(b"and one more")]))

        assert MANY[1:] == await received_to_end(rig, channel)
        assert CloseReason.SEND_FAILED is channel.close_reason


@pytest.mark.parametrize("how", ["close", "reset"])
async def test_a_muted_channel_hands_out_all_that_came_before_the_end(link: Link, how: str) -> None:
    """P31: one a poll, and the loop rests while the channel is muted."""
    async with selecting(link) as rig:
        channel, peer = rig.connect()
        await peer.send_frames(*MANY)
        assert MANY[0] == await rig.receive(channel)
        rig.selector.mute(channel)
        getattr(peer, how)()
        assert await rig.is_quiet()
        assert channel.is_open

        rig.selector.unmute(channel)

        assert MANY[1:] == await received_one_by_one(rig, channel)
        assert channel.close_reason in (CloseReason.PEER_RESET, CloseReason.PEER_CLOSED)
        assert await rig.is_quiet()


async def test_a_response_that_fails_ends_what_is_handed_out(link: Link) -> None:
    """P31, P44: who does not take a response takes none to its other requests either."""
    async with selecting(link) as rig:
        channel, peer = rig.connect()
        await peer.send_frames(b"1", b"2", b"3")
        assert b"1" == await rig.receive(channel)
        rig.selector.mute(channel)
        peer.reset()
        assert await rig.is_quiet()

        assert not rig.selector.send(channel, Send([LARGE]))

        assert [] == await received_to_end(rig, channel)
        assert CloseReason.SEND_FAILED is channel.close_reason


async def test_a_large_frame_that_is_whole_is_handed_out(link: Link) -> None:
    large = random.Random(1).randbytes(100_000)
    async with selecting(link) as rig:
        channel, peer = rig.connect()
        await peer.send_frames(b"1", large, b"3")
        assert b"1" == await rig.receive(channel)
        rig.selector.mute(channel)
        peer.reset()
        await wait_all_tasks_blocked()
        rig.selector.unmute(channel)

        assert [large, b"3"] == [bytes(each) for each in await received_to_end(rig, channel)]


async def test_a_part_of_a_frame_is_not(link: Link) -> None:
    """P43."""
    async with selecting(link) as rig:
        channel, peer = rig.connect()
        await peer.send_frames(b"1", b"2")
        await peer.send(frame(bytes(5000))[:4500])
        assert b"1" == await rig.receive(channel)
        rig.selector.mute(channel)
        peer.reset()
        await wait_all_tasks_blocked()
        rig.selector.unmute(channel)

        assert [b"2"] == await received_to_end(rig, channel)


async def test_a_selector_that_pauses_hands_it_out_when_it_reads_again(link: Link) -> None:
    async with selecting(link) as rig:
        channel, peer = rig.connect()
        rig.selector.pause_reading()
        await peer.send_frames(*MANY)
        assert await rig.is_quiet()
        peer.reset()
        assert await rig.is_quiet()

        rig.selector.resume_reading()

        assert MANY == await received_to_end(rig, channel)


async def test_garbage_after_the_frames_is_called_so(link: Link) -> None:
    async with selecting(link) as rig:
        channel, peer = rig.connect(frame_bytes_max=2000)
        await peer.send_frames(*MANY)
        await peer.send(b"\xff\xff\xff\xff")
        assert MANY[0] == await rig.receive(channel)
        rig.selector.mute(channel)
        peer.reset()
        await wait_all_tasks_blocked()
        rig.selector.unmute(channel)

        assert MANY[1:] == await received_to_end(rig, channel)
        assert CloseReason.INVALID_RECEIVE is channel.close_reason


def resets(seed: int) -> tuple[list[bytes], int, bool]:
    """Payloads, how many of them are dealt with before the reset, and whether one is then."""
    rng = random.Random(seed)
    sizes = [1, 10, 1000, 4092, 4093, 9000]
    payloads = [b"%d" % number + bytes(rng.choice(sizes)) for number in range(rng.randrange(2, 7))]
    return payloads, rng.randrange(len(payloads)), rng.random() < 0.5


async def reset_once(rig: Selecting, channel: Channel, peer: Peer, seed: int) -> None:
    payloads, before, is_muted = resets(seed)
    await peer.send_frames(*payloads)
    received = [bytes(await rig.receive(channel)) for _ in range(before)]
    if is_muted:
        rig.selector.mute(channel)
    peer.reset()
    if is_muted:
        assert await rig.is_quiet()
        rig.selector.unmute(channel)
    elif seed % 3 == 0:
        rig.selector.send(channel, Send([LARGE]))
    received += [bytes(each) for each in await received_to_end(rig, channel)]

    assert payloads == received, seed


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 250, 50))
async def test_resets_at_any_moment_lose_nothing_that_arrived(link: Link, first: int) -> None:
    async with selecting(link) as rig:
        for seed in range(first, first + 50):
            channel, peer = rig.connect(frame_bytes_max=FRAME_BYTES_MAX)
            await reset_once(rig, channel, peer, seed)
