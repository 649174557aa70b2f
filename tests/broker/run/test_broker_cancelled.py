"""A broker cancelled at any moment loses nothing acknowledged and leaves nothing behind."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from pathlib import Path

import pytest
import trio

from support.brokers import broker_and_client, read_all
from support.calls import batch, create_topic, describe_topics, fetch, produce
from support.client import Client, connect
from support.leaks import nothing_left_behind
from trionet import open_broker

ROUNDS = 8
COUNT_MAX = 15
TOPIC = "t"


class Steps(trio.abc.Instrument):
    """Counts the steps of all tasks, and cancels a scope after so many.

    A task that counts passes of the loop would spin, and leave the threads little of the GIL.
    """

    def __init__(self, limit: float, scope: trio.CancelScope) -> None:
        self.count = 0
        self.has_cancelled = False
        self._limit = limit
        self._scope = scope

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        self.count += 1
        if self.count == self._limit:
            self.has_cancelled = True
            self._scope.cancel(reason="the moment has come")


@contextmanager
def counted(steps: Steps) -> Iterator[Steps]:
    trio.lowlevel.add_instrument(steps)
    try:
        yield steps
    finally:
        trio.lowlevel.remove_instrument(steps)


class Load:
    """Producers that remember what was acknowledged to them."""

    def __init__(self) -> None:
        self.acknowledged: list[bytes] = []
        self._sent = 0

    async def produce(self, client: Client, count: int) -> None:
        for _ in range(count):
            self._sent += 1
            value = b"%d" % self._sent
            answer = await produce(client, TOPIC, batch(value))
            assert 0 == answer.error_code
            self.acknowledged.append(value)


async def use(path: Path, load: Load, count: int, at_the_end: Callable[[], None]) -> None:
    """A broker, two producers and a waiting consumer, up to the orderly end of all."""
    async with AsyncExitStack() as outside, open_broker(log_dirs=str(path)) as broker:
        clients = [
            await outside.enter_async_context(connect(broker.bootstrap_servers)) for _ in range(3)
        ]
        if not await describe_topics(clients[0]):
            await create_topic(clients[0], TOPIC, internal_segment_bytes=2000)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(load.produce, clients[0], count)
            nursery.start_soon(load.produce, clients[1], count)
            await fetch(clients[2], TOPIC, max_wait_ms=5, min_bytes=10**6)
        at_the_end()


async def stored(path: Path) -> list[bytes | None]:
    """All records, read by a broker that nobody cancels."""
    async with broker_and_client(log_dirs=str(path)) as (_, client):
        return await read_all(client, TOPIC) if await describe_topics(client) else []


async def use_cancelled(path: Path, load: Load, count: int, limit: float, when: str) -> Steps:
    """As :func:`use`, cancelled after so many steps of it, or of its end alone."""
    with ExitStack() as counting, trio.CancelScope() as scope:
        steps = Steps(limit, scope)

        def begin() -> None:
            counting.enter_context(counted(steps))

        if when == "anywhere":
            begin()
            await use(path, load, count, lambda: None)
        else:
            await use(path, load, count, begin)
    return steps


@pytest.mark.slow
@pytest.mark.parametrize("when", ["anywhere", "at the end"])
@pytest.mark.parametrize("seed", [1, 2])
async def test_a_cancelled_broker_has_lost_nothing_and_left_nothing(
    tmp_path: Path, when: str, seed: int
) -> None:
    choices = random.Random(f"{when} {seed}")
    load = Load()
    whole = await use_cancelled(tmp_path, load, COUNT_MAX, math.inf, when)
    assert not whole.has_cancelled
    assert 2 * COUNT_MAX == len(load.acknowledged)
    cancelled = 0

    for _ in range(ROUNDS):
        count, limit = choices.randint(0, COUNT_MAX), choices.randint(1, whole.count)
        with nothing_left_behind():
            cancelled += (await use_cancelled(tmp_path, load, count, limit, when)).has_cancelled
        values = await stored(tmp_path)

        assert set() == set(load.acknowledged) - set(values), f"after {limit} steps"
        assert len(values) == len(set(values))

    assert 0 < cancelled


@pytest.mark.parametrize("limit", range(1, 300, 15))
async def test_a_broker_in_memory_can_be_cancelled_while_it_starts_or_stops(limit: int) -> None:
    with nothing_left_behind(), trio.CancelScope() as scope, counted(Steps(limit, scope)):
        async with broker_and_client() as (_, client):
            await describe_topics(client, TOPIC, allow_auto_topic_creation=True)


@pytest.mark.parametrize("limit", [1, 3, 10, 30, 100, 300])
@pytest.mark.parametrize("when", ["while it serves", "while it stops"])
async def test_the_start_after_a_cancellation_scans_nothing(
    tmp_path: Path, limit: int, when: str
) -> None:
    with nothing_left_behind(), trio.CancelScope() as scope:
        async with AsyncExitStack() as outside, open_broker(log_dirs=str(tmp_path)) as broker:
            client = await outside.enter_async_context(connect(broker.bootstrap_servers))
            await create_topic(client, TOPIC, partitions=3)
            for partition in range(3):
                await produce(client, TOPIC, batch(b"a", b"b"), partition=partition)
            outside.enter_context(counted(Steps(limit, scope)))
            if when == "while it serves":
                await Load().produce(client, 10**6)

    async with open_broker(log_dirs=str(tmp_path)) as broker:
        assert broker._state.folder.was_clean
        assert all(2 <= log.end_offset for log in broker._state.folder.logs.values())
        assert 3 == broker.statistics().partitions


async def test_a_waiting_fetch_does_not_hold_up_a_cancelled_broker() -> None:
    with trio.fail_after(2), nothing_left_behind():
        async with AsyncExitStack() as outside:
            with trio.CancelScope() as scope:
                async with open_broker() as broker:
                    client = await outside.enter_async_context(connect(broker.bootstrap_servers))
                    await create_topic(client, TOPIC)
                    async with trio.open_nursery() as nursery:
                        wait = 2**31 - 1
                        nursery.start_soon(lambda: fetch(client, TOPIC, max_wait_ms=wait))
                        await trio.testing.wait_all_tasks_blocked()
                        assert 1 == broker.statistics().delayed
                        scope.cancel()
                        await trio.sleep_forever()

            assert b"" == await client.receive_to_end()
