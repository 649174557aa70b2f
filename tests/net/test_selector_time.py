"""Time in a Selector: which idle channels expire, when, and what a channel is charged for."""

from __future__ import annotations

import math

import pytest
import trio
from trio.testing import MockClock

from support.selecting import Link, Selecting, selecting
from support.wire import frame
from trionet.net._channel import Channel
from trionet.net.wire._close_reason import CloseReason
from trionet.net.wire._readiness import ReadinessKind
from trionet.net.wire._transmission import Send

LIMIT = 1.0
IDLE = CloseReason.IDLE


async def ended(rig: Selecting) -> list[Channel]:
    """What ended in all the polls that can be made without waiting."""
    found: list[Channel] = []
    for _ in range(10):
        rig.selector.wakeup()
        result = await rig.selector.poll()
        assert not result.completed_receives
        found += result.disconnected
    return found


async def test_a_channel_that_was_not_used_expires(link: Link, mock_clock: MockClock) -> None:
    """S17, S18: when more than the limit has passed, although it never became readable."""
    async with selecting(link, idle_seconds_max=LIMIT) as rig:
        channel, peer = rig.connect()
        mock_clock.jump(LIMIT)
        assert [] == await ended(rig)

        mock_clock.jump(0.001)

        assert [channel] == await ended(rig)
        assert IDLE is channel.close_reason
        assert b"" == await peer.receive_to_end()


async def test_a_receive_and_a_send_are_uses(link: Link, mock_clock: MockClock) -> None:
    async with selecting(link, idle_seconds_max=LIMIT) as rig:
        channel, peer = rig.connect()
        for _ in range(3):
            mock_clock.jump(0.6 * LIMIT)
            await peer.send_frames(b"a")
            assert b"a" == await rig.receive(channel)
            mock_clock.jump(0.6 * LIMIT)
            rig.selector.look_at_clock()
            assert rig.selector.send(channel, Send([frame(b"a")]))
            assert b"a" == await peer.receive_frame()

        mock_clock.jump(1.1 * LIMIT)

        assert [channel] == await ended(rig)


async def test_one_channel_a_poll_expires_the_least_recently_used_first(
    link: Link, mock_clock: MockClock
) -> None:
    """X8."""
    async with selecting(link, idle_seconds_max=LIMIT) as rig:
        pairs = [rig.connect() for _ in range(4)]
        for number in (2, 0, 3, 1):
            mock_clock.jump(0.01)
            channel, peer = pairs[number]
            await peer.send_frames(b"a")
            assert b"a" == await rig.receive(channel)

        mock_clock.jump(2 * LIMIT)
        expired = [(await rig.poll()).disconnected for _ in pairs]

        assert [[pairs[number][0]] for number in (2, 0, 3, 1)] == expired


async def test_without_a_limit_no_channel_expires(
    kind: ReadinessKind, mock_clock: MockClock
) -> None:
    """X8: -1 in Kafka's settings."""
    async with selecting(kind, idle_seconds_max=math.inf) as rig:
        rig.connect()

        mock_clock.jump(9)  # of the 10 seconds that the rig lasts

        assert [] == await ended(rig)


@pytest.mark.parametrize("how", ["sends", "closes"])
async def test_a_muted_channel_expires_although_frames_wait(
    link: Link, mock_clock: MockClock, how: str
) -> None:
    """S21, S22: staged and in the socket; whether its peer has closed or not; told of once."""
    async with selecting(link, idle_seconds_max=LIMIT) as rig:
        channel, peer = rig.connect()
        await peer.send_frames(b"1", b"2", b"3")
        assert b"1" == await rig.receive(channel)
        rig.selector.mute(channel)
        await peer.send_frames(b"4")
        if how == "closes":
            peer.close()
        mock_clock.jump(0.6 * LIMIT)
        assert [] == await ended(rig)

        mock_clock.jump(0.6 * LIMIT)

        assert [channel] == await ended(rig)
        assert IDLE is channel.close_reason
        assert not channel.staged


@pytest.mark.parametrize("closes", [False, True])
async def test_waiting_frames_are_delivered_however_far_the_clock_jumps(
    link: Link, mock_clock: MockClock, closes: bool
) -> None:
    """S23, KAFKA-5587: all five, one per poll, and only then the end."""
    async with selecting(link, idle_seconds_max=LIMIT) as rig:
        channel, peer = rig.connect()
        await peer.send_frames(*[b"%d" % number for number in range(5)])
        if closes:
            peer.close()

        for number in range(5):
            mock_clock.jump(1.5 * LIMIT)
            assert b"%d" % number == await rig.receive(channel)
        if not closes:
            mock_clock.jump(1.5 * LIMIT)

        assert (CloseReason.PEER_CLOSED if closes else IDLE) is await rig.disconnected(channel)


async def test_frames_that_come_one_by_one_keep_their_channel(
    link: Link, mock_clock: MockClock
) -> None:
    """Each is a use, also a part of one."""
    async with selecting(link, idle_seconds_max=LIMIT) as rig:
        channel, peer = rig.connect()
        for part in (b"\0\0", b"\0\3", b"a", b"b"):
            mock_clock.jump(0.9 * LIMIT)
            await peer.send(part)
            assert [] == await ended(rig)
        mock_clock.jump(0.9 * LIMIT)
        await peer.send(b"c")

        assert b"abc" == await rig.receive(channel)


async def test_bytes_inside_tls_do_not_keep_a_muted_channel(
    kind: ReadinessKind, mock_clock: MockClock
) -> None:
    """P46, KAFKA-12427: polls do not refresh its time, however busy its neighbours are."""
    link: Link = "poller under TLS" if kind == "poller" else "socket under TLS"
    async with selecting(link, idle_seconds_max=LIMIT) as rig:
        channel, peer = rig.connect()
        other, other_peer = rig.connect()
        await peer.send_frames(*[bytes(3000)] * 4)  # one record, of which a read takes a part
        assert bytes(3000) == await rig.receive(channel)
        rig.selector.mute(channel)
        assert channel.has_buffered
        for _ in range(5):
            mock_clock.jump(0.19 * LIMIT)
            await other_peer.send_frames(b"a")
            assert b"a" == await rig.receive(other)

        mock_clock.jump(0.1 * LIMIT)

        assert [channel] == await ended(rig)


async def test_the_least_recently_used_channel_makes_room(
    link: Link, mock_clock: MockClock
) -> None:
    """S31: and when there is none, nothing happens."""
    async with selecting(link) as rig:
        first, first_peer = rig.connect()
        mock_clock.jump(0.1)
        second, _ = rig.connect()
        mock_clock.jump(0.1)
        await first_peer.send_frames(b"a")
        assert b"a" == await rig.receive(first)

        made = []
        while (channel := rig.selector.idle.least_recently_used()) is not None:
            rig.selector.disconnect(channel, CloseReason.EXCESS_CONNECTION)
            made.append(channel)

        assert [second, first] == made
        assert [second, first] == (await rig.poll()).disconnected
        assert CloseReason.EXCESS_CONNECTION is first.close_reason


async def test_the_alarm_ends_the_wait_when_a_channel_expires(
    link: Link, autojump_clock: MockClock
) -> None:
    """The loop sleeps until then, in one wait."""

    async with selecting(link, idle_seconds_max=LIMIT) as rig:
        channel, _ = rig.connect()
        began = trio.current_time()

        assert IDLE is await rig.disconnected(channel)

        assert LIMIT < trio.current_time() - began < 1.01 * LIMIT
        assert rig.readiness.parks <= 2


async def test_nothing_expires_that_may_have_sent_what_is_not_read_yet(
    link: Link, mock_clock: MockClock
) -> None:
    """S23: whose frames wait because the request channel is full is not idle; nor is it known
    who sent none, whose time begins anew."""
    async with selecting(link, idle_seconds_max=LIMIT) as rig:
        (silent, _), (channel, peer) = rig.connect(), rig.connect()
        await peer.send_frames(b"1", b"2")
        assert b"1" == await rig.receive(channel)
        rig.selector.pause_reading()
        await peer.send_frames(b"3")
        mock_clock.jump(5 * LIMIT)
        assert [] == await ended(rig)
        assert await rig.is_quiet()
        mock_clock.jump(0.5 * LIMIT)

        rig.selector.resume_reading()

        assert [b"2", b"3"] == [await rig.receive(channel) for _ in range(2)]
        mock_clock.jump(0.6 * LIMIT)
        assert [silent] == await ended(rig)


async def test_who_is_muted_expires_although_nothing_is_read(
    link: Link, mock_clock: MockClock
) -> None:
    """As in Kafka; and a stop would wait for ever for one that reads nothing."""
    async with selecting(link, idle_seconds_max=LIMIT) as rig:
        muted, _ = rig.connect()
        stuck, _ = rig.connect()
        rig.selector.mute(muted)
        assert not rig.selector.send(stuck, Send([frame(bytes(20_000_000))]))
        assert [] == await ended(rig)  # what the sockets take is written
        rig.selector.pause_reading()
        mock_clock.jump(1.1 * LIMIT)

        assert {muted, stuck} == set(await ended(rig))


async def test_channel_is_charged_for_what_is_done_with_it(link: Link) -> None:
    """T14: its handshake, its receives, those that were staged, and its Sends; no other's."""
    async with selecting(link, times_channels=True) as rig:
        channel, peer = rig.connect()
        other, _ = rig.connect()
        await peer.send_frames(b"1", b"2")
        charged: list[int] = []

        for payload in (b"1", b"2"):
            assert payload == bytes(await rig.receive(channel))
            charged.append(channel.network_thread_ns)
            channel.network_thread_ns = 0
        rig.selector.send(channel, Send([frame(b"3")]))
        charged.append(channel.network_thread_ns)

        assert min(charged) > 0
        assert link.endswith("TLS") or 0 == other.network_thread_ns


async def test_nothing_is_charged_unless_it_is_asked_for(link: Link) -> None:
    async with selecting(link) as rig:
        channel, peer = rig.connect()
        await peer.send_frames(b"1")
        await rig.receive(channel)
        rig.selector.send(channel, Send([frame(b"2")]))

        assert 0 == channel.network_thread_ns
