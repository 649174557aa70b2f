"""Back-pressure: staged receives, muted channels and the pause of all reading."""

from __future__ import annotations

import select

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from support.selecting import Link, Selecting, selecting
from support.wire import Peer, frame
from trionet.net._channel import Channel
from trionet.net.wire._close_reason import CloseReason
from trionet.net.wire._readiness import READ
from trionet.net.wire._transmission import Send

MEGABYTE = 1024 * 1024


async def test_frames_of_one_read_come_one_per_poll_and_no_poll_waits(
    link: Link,
) -> None:
    async with selecting(link) as rig:
        channel, peer = rig.connect()
        await peer.send_frames(b"1", b"2", b"3")
        assert b"1" == await rig.receive(channel)
        parks = rig.readiness.parks

        second, third = await rig.selector.poll(), await rig.selector.poll()

        assert [(channel, b"2")] == second.completed_receives
        assert [(channel, b"3")] == third.completed_receives
        assert parks == rig.readiness.parks
        assert await rig.is_quiet()


async def test_a_channel_with_a_staged_frame_and_news_has_one_turn(link: Link) -> None:
    """At most one receive of a channel in a poll, so that its owner can mute it before the next;
    and what is staged is older than what its socket has."""
    async with selecting(link) as rig:
        channel, peer = rig.connect()
        await peer.send_frames(b"1", b"2")
        assert b"1" == await rig.receive(channel)
        await peer.send_frames(b"3")
        select.select([channel.fd], [], [], 5)

        second, third = await rig.poll(), await rig.poll()

        assert [(channel, b"2")] == second.completed_receives
        assert [(channel, b"3")] == third.completed_receives


async def test_nothing_further_is_read_while_frames_are_staged(link: Link) -> None:
    async with selecting(link) as rig:
        channel, peer = rig.connect()
        await peer.send_frames(b"1", b"2", b"3")
        assert b"1" == await rig.receive(channel)
        await peer.send_frames(b"4")
        await wait_all_tasks_blocked()

        assert b"2" == await rig.receive(channel)
        assert b"3" == await rig.receive(channel)
        assert 3 * 5 == channel.bytes_received

        assert b"4" == await rig.receive(channel)


async def test_other_channels_are_served_between_staged_frames(link: Link) -> None:
    async with selecting(link) as rig:
        busy, busy_peer = rig.connect()
        other, peer = rig.connect()
        await busy_peer.send_frames(*[b"staged"] * 100)
        await rig.receive(busy)
        await peer.send_frames(b"a")
        await wait_all_tasks_blocked()

        receivers = [c for _ in range(3) for c, _ in (await rig.poll()).completed_receives]

        assert other in receivers
        assert 50 < len(busy.staged)


async def test_muted_channel_yields_nothing_while_another_works(link: Link) -> None:
    """S14."""
    async with selecting(link) as rig:
        muted, muted_peer = rig.connect()
        other, peer = rig.connect()
        rig.selector.mute(muted)
        await muted_peer.send_frames(b"waits")
        await peer.send_frames(b"goes")

        assert b"goes" == await rig.receive(other)
        assert await rig.is_quiet()
        assert 0 == muted.bytes_received

        rig.selector.unmute(muted)
        assert b"waits" == await rig.receive(muted)


async def test_staged_frames_of_a_muted_channel_wait_for_it(link: Link) -> None:
    async with selecting(link) as rig:
        channel, peer = rig.connect()
        await peer.send_frames(b"1", b"2")
        assert b"1" == await rig.receive(channel)
        rig.selector.mute(channel)

        assert await rig.is_quiet()

        rig.selector.unmute(channel)
        parks = rig.readiness.parks
        assert [(channel, b"2")] == (await rig.selector.poll()).completed_receives
        assert parks == rig.readiness.parks


async def test_second_request_stays_in_the_socket_until_the_first_has_its_response(
    link: Link,
) -> None:
    """X6."""
    async with selecting(link) as rig:
        channel, peer = rig.connect()
        await peer.send_frames(b"first")
        assert b"first" == await rig.receive(channel)
        rig.selector.mute(channel)
        await peer.send_frames(b"second")

        assert await rig.is_quiet()
        assert 9 == channel.bytes_received
        assert not channel.staged

        assert rig.selector.send(channel, Send([frame(b"answer")]))
        rig.selector.unmute(channel)
        assert b"second" == await rig.receive(channel)
        assert b"answer" == await peer.receive_frame()


async def test_poller_learns_of_a_mute_only_when_data_comes_meanwhile(
    link: Link,
) -> None:
    """Muting and unmuting around a quick response costs no system call."""
    async with selecting(link) as rig:
        channel, peer = rig.connect()
        rig.selector.mute(channel)
        rig.selector.unmute(channel)
        assert [] == rig.readiness.modifications

        rig.selector.mute(channel)
        await peer.send_frames(b"a")
        assert await rig.is_quiet()
        assert [(channel.fd, 0)] == rig.readiness.modifications
        rig.selector.unmute(channel)

        assert [(channel.fd, 0), (channel.fd, READ)] == rig.readiness.modifications
        assert b"a" == await rig.receive(channel)


async def test_unmuting_what_is_not_muted_or_not_open_does_nothing(link: Link) -> None:
    async with selecting(link) as rig:
        channel, peer = rig.connect()
        rig.selector.unmute(channel)
        rig.selector.mute(channel)
        rig.selector.close(channel)

        rig.selector.unmute(channel)

        assert channel.muting.is_muted
        assert [] == rig.readiness.modifications
        assert b"" == await peer.receive_to_end()


async def test_send_of_a_muted_channel_goes_on(link: Link) -> None:
    async with selecting(link) as rig, trio.open_nursery() as nursery:
        channel, peer = rig.connect()
        rig.selector.mute(channel)
        await peer.send_frames(b"waits")
        assert not rig.selector.send(channel, Send([frame(bytes(10 * MEGABYTE))]))
        nursery.start_soon(peer.receive_frame)

        assert [channel] == (await rig.poll()).completed_sends


async def drained(rig: Selecting, channel: Channel) -> tuple[list[bytes], CloseReason | None]:
    """Every frame up to the end of a channel, each answered before the next is taken."""
    payloads: list[bytes] = []
    while True:
        result = await rig.poll()
        assert len(result.completed_receives) + len(result.disconnected) == 1
        if result.disconnected:
            return payloads, channel.close_reason
        payloads.append(bytes(result.completed_receives[0][1]))
        rig.selector.mute(channel)
        await wait_all_tasks_blocked()
        assert (await rig.selector.poll()).is_empty
        rig.selector.unmute(channel)


@pytest.mark.parametrize("count", [0, 1, 5])
async def test_frames_before_the_end_are_delivered_one_by_one_and_the_end_once(
    link: Link, count: int
) -> None:
    """S23, S24: never two in one poll, never the end before the last of them."""
    async with selecting(link) as rig:
        channel, peer = rig.connect()
        payloads = [b"%d" % n for n in range(count)]
        await peer.send_frames(*payloads)
        peer.close()

        assert (payloads, CloseReason.PEER_CLOSED) == await drained(rig, channel)
        assert await rig.is_quiet()


@pytest.mark.parametrize("count", [0, 3])
@pytest.mark.parametrize("size", [10, 100_000])
async def test_frames_before_one_that_never_ends_are_delivered(
    link: Link, count: int, size: int
) -> None:
    """S25, P43: the part gives no delivery and delays nothing."""
    async with selecting(link) as rig:
        channel, peer = rig.connect()
        payloads = [b"%d" % n for n in range(count)]
        await peer.send(b"".join(map(frame, payloads)) + frame(bytes(size))[:-1])
        peer.close()

        assert (payloads, CloseReason.PEER_CLOSED_IN_FRAME) == await drained(rig, channel)


async def test_frames_before_an_impossible_size_are_delivered(link: Link) -> None:
    async with selecting(link) as rig:
        channel, peer = rig.connect()
        await peer.send(frame(b"1") + frame(b"2") + b"\xff\xff\xff\xff")

        assert ([b"1", b"2"], CloseReason.INVALID_RECEIVE) == await drained(rig, channel)


async def test_peer_that_sends_no_more_still_gets_its_responses(link: Link) -> None:
    """The end of a muted channel's stream waits like data, and does not make the loop spin."""
    async with selecting(link) as rig:
        channel, peer = rig.connect()
        await peer.send_frames(b"last")
        assert b"last" == await rig.receive(channel)
        rig.selector.mute(channel)
        peer.finish()
        assert await rig.is_quiet()
        assert channel.is_open

        rig.selector.send(channel, Send([frame(b"answer")]))
        rig.selector.unmute(channel)

        assert b"answer" == await peer.receive_frame()
        assert CloseReason.PEER_CLOSED is await rig.disconnected(channel)


async def paused_with(rig: Selecting, *payloads: bytes) -> tuple[Channel, Peer]:
    """A channel whose peer sent frames after the pause began."""
    channel, peer = rig.connect()
    rig.selector.pause_reading()
    await peer.send_frames(*payloads)
    return channel, peer


async def test_pause_reads_nothing_and_does_not_spin(link: Link) -> None:
    async with selecting(link) as rig:
        channel, _ = await paused_with(rig, b"1", b"2")

        assert await rig.is_quiet()
        assert 0 == channel.bytes_received

        rig.selector.resume_reading()
        assert b"1" == await rig.receive(channel)
        assert b"2" == await rig.receive(channel)


async def test_pause_hands_out_no_staged_frame(link: Link) -> None:
    async with selecting(link) as rig:
        channel, peer = rig.connect()
        await peer.send_frames(b"1", b"2")
        assert b"1" == await rig.receive(channel)

        rig.selector.pause_reading()
        assert await rig.is_quiet()

        rig.selector.resume_reading()
        assert b"2" == await rig.receive(channel)


async def test_sends_go_on_during_a_pause(link: Link) -> None:
    """Neither side can wait for the other."""
    async with selecting(link) as rig, trio.open_nursery() as nursery:
        channel, peer = await paused_with(rig, b"waits")
        assert not rig.selector.send(channel, Send([frame(bytes(10 * MEGABYTE))]))
        nursery.start_soon(peer.receive_frame)

        assert [channel] == (await rig.poll()).completed_sends
        assert await rig.is_quiet()

        rig.selector.resume_reading()
        assert b"waits" == await rig.receive(channel)


async def test_channel_unmuted_during_a_pause_stays_silent_until_its_end(
    link: Link,
) -> None:
    async with selecting(link) as rig:
        channel, peer = rig.connect()
        await peer.send_frames(b"1", b"2")
        await rig.receive(channel)
        rig.selector.mute(channel)
        rig.selector.pause_reading()
        await peer.send_frames(b"3")
        assert await rig.is_quiet()

        rig.selector.unmute(channel)
        assert await rig.is_quiet()

        rig.selector.resume_reading()
        assert b"2" == await rig.receive(channel)
        assert b"3" == await rig.receive(channel)


async def test_channel_muted_during_a_pause_stays_muted_after_it(link: Link) -> None:
    async with selecting(link) as rig:
        channel, _ = await paused_with(rig, b"a")
        assert await rig.is_quiet()
        rig.selector.mute(channel)

        rig.selector.resume_reading()
        assert await rig.is_quiet()

        rig.selector.unmute(channel)
        assert b"a" == await rig.receive(channel)


async def test_channel_closed_during_a_pause_is_not_looked_at_after_it(
    link: Link,
) -> None:
    """KAFKA-6185: it is in no collection any more, however long the pause lasts."""
    async with selecting(link) as rig:
        channel, _ = await paused_with(rig, b"a")
        other, _ = await paused_with(rig, b"b")
        assert await rig.is_quiet()
        rig.selector.close(channel)
        assert [other] == list(rig.selector._steps.paused)

        rig.selector.resume_reading()

        assert b"b" == await rig.receive(other)


async def test_end_of_a_stream_waits_for_the_end_of_the_pause(link: Link) -> None:
    async with selecting(link) as rig:
        channel, peer = await paused_with(rig, b"last")
        peer.finish()
        assert await rig.is_quiet()
        assert channel.is_open

        rig.selector.resume_reading()

        assert ([b"last"], CloseReason.PEER_CLOSED) == await drained(rig, channel)
