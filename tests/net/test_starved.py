"""Channels without memory: each has its chance, and none of them always the first."""

from __future__ import annotations

from typing import Any

from trionet.net._channel import Channel
from trionet.net._channels import Starved
from trionet.net.wire._memory_pool import MemoryPool


class Unconnected:
    """A transport of which nothing is needed."""

    def fileno(self) -> int:
        return -1


def starved(pool: MemoryPool, woken: list[None]) -> Starved:
    """One that turns every order round, with channels a to c."""
    found = Starved(pool, lambda: woken.append(None), shuffle=lambda items: items.reverse())
    transport: Any = Unconnected()
    for name in "abc":
        found.add(Channel(name, transport, 100))
    return found


def test_the_order_is_not_that_in_which_they_came() -> None:
    """There may not be enough for all (KIP-72)."""
    waiting = starved(MemoryPool(10, 10), [])

    assert ["c", "b", "a"] == [channel.id for channel in waiting.take()]
    assert not waiting.channels


def test_nothing_is_tried_without_memory() -> None:
    """They wait on, and are woken once by the release that ends the want."""
    pool, woken = MemoryPool(10, 10), list[None]()
    lease = pool.try_allocate(10, 0.0)
    assert lease is not None
    waiting = starved(pool, woken)

    assert [] == waiting.take()
    assert 3 == len(waiting.channels)
    pool.release(lease, 1.0)
    assert 1 == len(woken)
    assert 3 == len(waiting.take())
