"""When a Selector waits, what ends the wait, and what keeps it from waiting."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from support.selecting import Link, Selecting, selecting
from trionet.net._selector import EMPTY_POLLS_BEFORE_PARK
from trionet.net.wire._close_reason import CloseReason
from trionet.net.wire._readiness import ReadinessKind


async def test_frames_that_came_together_are_handed_out_without_a_wait_between_them(
    link: Link,
) -> None:
    """Nothing more comes from the socket: while a channel has staged frames no poll waits."""
    async with selecting(link) as rig:
        _, peer = rig.connect()
        await peer.send_frames(b"1", b"2", b"3", b"4")

        frames = [frame for _ in range(4) for _, frame in (await rig.poll()).completed_receives]

        assert [b"1", b"2", b"3", b"4"] == frames


async def test_poll_without_work_parks_until_there_is_some(link: Link) -> None:
    """An empty poll is repeated a few times, then the loop waits in one place."""
    async with selecting(link) as rig:
        channel, peer = rig.connect()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(rig.receive, channel)
            await wait_all_tasks_blocked()
            assert EMPTY_POLLS_BEFORE_PARK + 1 == rig.readiness.polls
            assert 1 == rig.readiness.parks

            await peer.send_frames(b"a")


async def test_poll_does_not_wait_while_its_owner_has_work(link: Link) -> None:
    async with selecting(link) as rig:
        rig.connect()

        for _ in range(EMPTY_POLLS_BEFORE_PARK + 2):
            await rig.selector.poll(has_work=lambda: True)

        assert 0 == rig.readiness.parks


async def test_owner_that_has_work_ends_the_park_and_no_later_one(link: Link) -> None:
    async with selecting(link) as rig:
        rig.connect()
        rig.selector.unpark()  # nothing is parked: this is for no poll
        async with trio.open_nursery() as nursery:
            for parks in (1, 2):
                nursery.start_soon(polls_until_parked, rig)
                await wait_all_tasks_blocked()
                assert parks == rig.readiness.parks

                rig.selector.unpark()
                await wait_all_tasks_blocked()


async def polls_until_parked(rig: Selecting) -> None:
    """As an owner without work does; the last of these polls parks."""
    for _ in range(EMPTY_POLLS_BEFORE_PARK + 1):
        await rig.selector.poll(has_work=lambda: False)


async def test_wakeup_ends_the_poll_under_way(link: Link) -> None:
    async with selecting(link) as rig:
        rig.connect()
        for _ in range(EMPTY_POLLS_BEFORE_PARK):
            await rig.selector.poll()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(rig.selector.poll)
            await wait_all_tasks_blocked()
            assert 1 == rig.readiness.parks

            rig.selector.wakeup()


async def test_wakeup_between_polls_keeps_the_next_one_from_waiting(link: Link) -> None:
    """A wake-up is never lost, whenever it comes: also in the poll's own checkpoint."""
    async with selecting(link) as rig:
        rig.connect()
        for _ in range(EMPTY_POLLS_BEFORE_PARK):
            await rig.selector.poll()

        rig.selector.wakeup()
        await rig.selector.poll()
        assert 0 == rig.readiness.parks

        for _ in range(EMPTY_POLLS_BEFORE_PARK):
            await rig.selector.poll()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(rig.selector.poll)
            nursery.start_soon(in_the_next_pass, rig.selector.wakeup)
        assert rig.readiness.parks <= 1


async def in_the_next_pass(call: object) -> None:
    assert callable(call)
    call()


async def test_channel_that_ends_between_polls_keeps_the_next_one_from_waiting(
    link: Link,
) -> None:
    async with selecting(link) as rig:
        channel, _ = rig.connect()
        for _ in range(EMPTY_POLLS_BEFORE_PARK):
            await rig.selector.poll()

        rig.selector.disconnect(channel, CloseReason.IDLE)
        result = await rig.selector.poll()

        assert [channel] == result.disconnected
        assert 0 == rig.readiness.parks


async def test_a_poll_may_have_a_limit_of_its_wait(
    kind: ReadinessKind, mock_clock: MockClock
) -> None:
    """X7: not at all, a while, and never less than nothing."""
    async with selecting(kind) as rig:
        channel, peer = rig.connect()
        with pytest.raises(ValueError, match="seconds_max = -1"):
            await rig.selector.poll(seconds_max=-1)
        for _ in range(10):
            assert (await rig.selector.poll(seconds_max=0)).is_empty
        assert 0 == rig.readiness.parks

        async with trio.open_nursery() as nursery:
            ended_at = []

            async def poll() -> None:
                while not rig.readiness.parks:
                    await rig.selector.poll(seconds_max=5)
                ended_at.append(trio.current_time())

            nursery.start_soon(poll)
            await wait_all_tasks_blocked()
            mock_clock.jump(4.9)
            await wait_all_tasks_blocked()
            assert not ended_at
            mock_clock.jump(0.1)
        assert 1 == len(ended_at)

        await peer.send_frames(b"a")
        assert b"a" == await rig.receive(channel)
