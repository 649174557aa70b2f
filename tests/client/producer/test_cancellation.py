"""Cancellation at every step of a producer's user, one step later each time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import attrs
import pytest
import trio
from trio.testing import MockClock

from support.scripted_leaders import AT_ONCE, Leaders, hang_up, say_nothing
from trionet import open_producer
from trionet.client._backoff import ExponentialBackoff
from trionet.client._network_settings import ConnectionTimes
from trionet.client.producer._producer import Producer
from trionet.client.producer._settings import ProducerSettings
from trionet.testing import MemoryNetwork

STEPS = 40
Call = Callable[[Producer, bytes], Awaitable[object]]


async def cancel_after(scope: trio.CancelScope, steps: int) -> None:
    for _ in range(steps):
        await trio.lowlevel.checkpoint()
    scope.cancel()


async def call_for(steps: int, call: Awaitable[object]) -> bool:
    """Whether a call came to its end within so many steps."""
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(cancel_after, scope, steps)
            await call
            nursery.cancel_scope.cancel()
            return True
    return False


async def send(producer: Producer, value: bytes) -> None:
    await producer.send("t", value)


async def enqueue(producer: Producer, value: bytes) -> None:
    await (await producer.enqueue("t", value))


async def send_batch(producer: Producer, value: bytes) -> None:
    await producer.send_batch("t", [value, value + b"+"])


async def flush(producer: Producer, value: bytes) -> None:
    _ = await producer.enqueue("t", value)
    await producer.flush()


@pytest.mark.parametrize("settings", [AT_ONCE, ProducerSettings()])
@pytest.mark.parametrize("call", [send, enqueue, send_batch, flush])
async def test_call_that_is_cancelled_at_any_step_loses_and_doubles_nothing(
    autojump_clock: MockClock,
    leaders: Leaders,
    call: Call,
    settings: ProducerSettings,
) -> None:
    """What was acknowledged is there, what is there is there once, and the producer goes on."""
    acknowledged = []
    async with leaders.producer(settings) as producer:
        for steps in range(STEPS):
            value = b"%d" % steps
            if steps % 7 == 3:
                leaders.answers = [leaders.write_and(hang_up)]
            if await call_for(steps, call(producer, value)):
                acknowledged.append(value)
        await producer.send("t", b"last")

    written = leaders.values()
    assert b"last" == written[-1]
    assert len(set(written)) == len(written)
    assert [each for each in written if each in acknowledged] == acknowledged


async def test_producer_that_is_cancelled_at_any_step_leaves_nothing_open(
    autojump_clock: MockClock, network: MemoryNetwork, leaders: Leaders
) -> None:
    """And every delivery is decided."""
    at_once = ConnectionTimes(reconnect=ExponentialBackoff(0.0, 0.0))
    client = attrs.evolve(ProducerSettings().client, times=at_once)
    settings = attrs.evolve(AT_ONCE, client=client)
    ended = 0
    async with leaders.listening():
        for steps in range(2 * STEPS):
            deliveries = []

            async def live() -> None:
                async with open_producer(leaders.address, settings, network=network) as producer:
                    deliveries.append(await producer.enqueue("t", b"a"))  # noqa: B023
                    deliveries.append(await producer.enqueue("t", b"b"))  # noqa: B023

            ended += await call_for(steps, live())

            assert all(each.is_done for each in deliveries)
            assert not [each for each in network.open_sockets if each.host != "10.0.0.1"]
    assert 0 < ended < 2 * STEPS


async def test_cancelled_send_takes_back_a_record_that_is_not_on_its_way(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    """Those beside it in its batch go on; one that is on its way is written."""
    lingering = ProducerSettings(linger_seconds=10.0)
    async with leaders.producer(lingering) as producer:
        before = await producer.enqueue("t", b"a")
        with trio.move_on_after(1):
            await producer.send("t", b"not sent")
        after = await producer.enqueue("t", b"b")
        assert (0, 1) == ((await before).offset, (await after).offset)
        leaders.answers = [leaders.write_and(say_nothing)]
        with trio.move_on_after(11):
            await producer.send("t", b"sent")

    assert [b"a", b"b", b"sent"] == leaders.values()


async def test_flush_that_is_cancelled_lets_records_linger_again(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    # Without idempotence, with which the first batch of a producer goes alone.
    lingering = ProducerSettings(linger_seconds=10.0, idempotence=False)
    async with leaders.producer(lingering) as producer:
        leaders.answers = [say_nothing]
        _ = await producer.enqueue("t", b"a")
        with trio.move_on_after(1):
            await producer.flush()
        _ = await producer.enqueue("t", b"b")
        await trio.sleep(9)

        assert 1 == leaders.nodes[1].names().count("Produce")
        await trio.sleep(2)
        assert 2 == leaders.nodes[1].names().count("Produce")


async def test_flush_does_not_wait_for_a_record_that_is_taken_back_meanwhile(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    """It is alone in its batch, which never gets to a leader."""
    async with leaders.producer(AT_ONCE) as producer:
        await producer.send("t", b"first")
        leaders.leaders["t", 0] = 9, 2  # nobody we know of
        before = producer.send_nowait("t", b"before")
        await trio.sleep(1)

        async def send_in_vain() -> None:
            with trio.move_on_after(2):
                await producer.send("t", b"taken back")

        async def come_back() -> None:
            await trio.sleep(5)
            leaders.leaders["t", 0] = 1, 3

        async with trio.open_nursery() as nursery:
            nursery.start_soon(send_in_vain)
            nursery.start_soon(come_back)
            await trio.sleep(1)
            with trio.fail_after(20):
                await producer.flush()
        assert 1 == before.result().offset

    assert [b"first", b"before"] == leaders.values()
