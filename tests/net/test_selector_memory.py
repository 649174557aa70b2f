"""Channels that share a memory pool: who gets none waits, and nobody spins (KIP-72)."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from support.selecting import Link, Selecting, selecting
from support.wire import Peer
from trionet.net._channel import Channel
from trionet.net.wire._close_reason import CloseReason
from trionet.net.wire._framing import Frame
from trionet.net.wire._memory_pool import MemoryPool
from trionet.net.wire._readiness import ReadinessKind

SIZE = 100_000


def pool_of(size: int = SIZE) -> MemoryPool:
    return MemoryPool(size, size)


async def first_of(rig: Selecting, count: int) -> list[tuple[Channel, Frame]]:
    """The next receives."""
    found: list[tuple[Channel, Frame]] = []
    while len(found) < count:
        found += (await rig.poll()).completed_receives
    return found


def out_of_memory(rig: Selecting) -> list[Channel]:
    return [channel for channel in rig.selector.channels if channel.muting.is_out_of_memory]


async def talking(rig: Selecting, nursery: trio.Nursery, count: int) -> list[tuple[Channel, Peer]]:
    """Channels whose peers send one large frame each."""
    pairs = [rig.connect() for _ in range(count)]
    for number, (_, peer) in enumerate(pairs):
        nursery.start_soon(peer.send_frames, bytes([number]) * SIZE)
    return pairs


async def test_a_frame_waits_until_there_is_memory_for_it(link: Link) -> None:
    """S26, S41: one of two is delivered; the other when the memory of the first is back."""
    pool = pool_of()
    async with selecting(link, pool=pool) as rig, trio.open_nursery() as nursery:
        await talking(rig, nursery, 2)
        [(lucky, first)] = await first_of(rig, 1)
        assert SIZE == len(first)
        assert pool.available <= 0
        assert await rig.is_quiet()
        [waiting] = out_of_memory(rig)
        assert waiting is not lucky
        assert not waiting.interest

        lease = lucky.take_lease()
        assert lease is not None
        pool.release(lease, 0.0)

        [(channel, second)] = await first_of(rig, 1)
        assert waiting is channel
        assert {bytes(first), bytes(second)} == {bytes(SIZE), b"\1" * SIZE}
        assert [] == out_of_memory(rig)
        assert not rig.selector._steps.starved.channels


async def test_memory_that_is_back_wakes_a_loop_that_waits_at_once(
    link: Link, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No poll between the one that found no memory and the one that waits is needed for it."""
    monkeypatch.setattr("trionet.net._selector.EMPTY_POLLS_BEFORE_PARK", 0)
    pool = pool_of()
    lease = pool.try_allocate(SIZE, 0.0)
    assert lease is not None
    found: list[tuple[Channel, Frame]] = []
    async with selecting(link, pool=pool) as rig, trio.open_nursery() as nursery:
        await talking(rig, nursery, 1)

        async def receive() -> None:
            found.extend(await first_of(rig, 1))

        nursery.start_soon(receive)
        await wait_all_tasks_blocked()
        assert 1 == len(out_of_memory(rig))

        pool.release(lease, 0.0)
        await wait_all_tasks_blocked()

        assert [bytes(SIZE)] == [bytes(payload) for _, payload in found]


async def test_all_get_their_turn(link: Link) -> None:
    """S26, S41: many more than there is memory for, and each frame once."""
    pool = pool_of(2 * SIZE)
    async with selecting(link, pool=pool) as rig, trio.open_nursery() as nursery:
        pairs = await talking(rig, nursery, 10)
        seen: list[bytes] = []
        while len(seen) < len(pairs):
            for channel, payload in await first_of(rig, 1):
                seen.append(bytes(payload))
                lease = channel.take_lease()
                assert lease is not None
                assert pool.used <= 2 * SIZE
                pool.release(lease, 0.0)

        assert sorted(bytes([number]) * SIZE for number in range(10)) == sorted(seen)
        assert 0 == pool.used


async def test_while_memory_is_short_it_is_drawn_which_channel_is_read_first(
    kind: ReadinessKind,
) -> None:
    """Kafka: Selector.determineHandlingOrder."""
    pool = MemoryPool(10 * SIZE, SIZE)
    drawn: list[int] = []

    def shuffle(items: list[Any]) -> None:
        drawn.append(len(items))

    async with selecting(kind, pool=pool, shuffle=shuffle) as rig:
        peers = [peer for _, peer in (rig.connect() for _ in range(3))]
        await send_small(peers)
        assert 3 == len(await first_of(rig, 3))
        assert [] == drawn
        leases = [pool.try_allocate(size, 0.0) for size in [SIZE] * 9 + [SIZE // 2]]
        assert None not in leases
        assert pool.is_low
        await send_small(peers)

        assert 3 == len(await first_of(rig, 3))
        assert 3 == sum(drawn)


async def send_small(peers: list[Peer]) -> None:
    for peer in peers:
        await peer.send_frames(b"small")
    await wait_all_tasks_blocked()


async def test_a_muted_channel_is_not_read_because_memory_is_back(link: Link) -> None:
    pool = pool_of()
    async with selecting(link, pool=pool) as rig, trio.open_nursery() as nursery:
        await talking(rig, nursery, 2)
        [(lucky, _)] = await first_of(rig, 1)
        assert await rig.is_quiet()
        [waiting] = out_of_memory(rig)
        rig.selector.mute(waiting)
        lease = lucky.take_lease()
        assert lease is not None
        pool.release(lease, 0.0)
        assert await rig.is_quiet()
        assert 0 == pool.used

        rig.selector.unmute(waiting)

        [(channel, _)] = await first_of(rig, 1)
        assert waiting is channel


async def test_a_channel_that_ends_gives_its_memory_back(link: Link) -> None:
    """In the middle of its frame; and one that waits for memory is forgotten."""
    pool = pool_of()
    async with selecting(link, pool=pool) as rig, trio.open_nursery() as nursery:
        (half, half_peer), (waiting, waiting_peer) = rig.connect(), rig.connect()
        await half_peer.send(SIZE.to_bytes(4, "big") + bytes(SIZE // 2))
        assert await rig.is_quiet()
        assert SIZE == pool.used
        nursery.start_soon(waiting_peer.send_frames, bytes(SIZE))
        assert await rig.is_quiet()
        assert [waiting] == out_of_memory(rig)

        rig.selector.disconnect(waiting, CloseReason.IDLE)
        half_peer.reset()

        ended: list[Channel] = []
        while len(ended) < 2:
            ended += (await rig.poll()).disconnected
        assert {half, waiting} == set(ended)
        assert 0 == pool.used
        assert not rig.selector._steps.starved.channels
        nursery.cancel_scope.cancel()


async def test_small_frames_need_no_memory_of_the_pool(link: Link) -> None:
    pool = pool_of()
    async with selecting(link, pool=pool) as rig, trio.open_nursery() as nursery:
        await talking(rig, nursery, 1)
        await first_of(rig, 1)
        channel, peer = rig.connect()
        assert pool.available <= 0

        await peer.send_frames(b"small")

        assert b"small" == await rig.receive(channel)


@pytest.mark.parametrize("count", [1, 3])
async def test_frames_after_a_large_one_wait_with_it(link: Link, count: int) -> None:
    pool = pool_of()
    async with selecting(link, pool=pool) as rig, trio.open_nursery() as nursery:
        await talking(rig, nursery, 1)
        [(lucky, _)] = await first_of(rig, 1)
        channel, peer = rig.connect()
        payloads = [b"before", b"x" * SIZE, *[b"behind"] * count]
        nursery.start_soon(peer.send_frames, *payloads)
        assert b"before" == await rig.receive(channel)
        assert await rig.is_quiet()

        lease = lucky.take_lease()
        assert lease is not None
        pool.release(lease, 0.0)

        for payload in payloads[1:]:
            [(receiver, found)] = await first_of(rig, 1)
            assert channel is receiver
            assert payload == found


@pytest.mark.parametrize("is_whole", [False, True])
async def test_a_channel_that_waits_for_memory_outlives_its_peer(is_whole: bool) -> None:
    """The poller tells of a hang-up whatever is watched: left there, the loop would spin."""
    pool = pool_of()
    async with selecting("poller", pool=pool) as rig, trio.open_nursery() as nursery:
        await talking(rig, nursery, 1)
        [(lucky, _)] = await first_of(rig, 1)
        channel, peer = rig.connect()
        await peer.send(SIZE.to_bytes(4, "big") + bytes(SIZE if is_whole else 5000))
        assert await rig.is_quiet()
        assert [channel] == out_of_memory(rig)
        peer.reset()
        assert await rig.is_quiet()
        assert lucky.is_open

        lease = lucky.take_lease()
        assert lease is not None
        pool.release(lease, 0.0)

        if is_whole:
            assert bytes(SIZE) == bytes(await rig.receive(channel))
        assert CloseReason.PEER_RESET is await rig.disconnected(channel)
        assert await rig.is_quiet()
