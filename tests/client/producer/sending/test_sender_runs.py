"""Who makes a producer's turns: its own task, or one that waits for a record's answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio
from trio.testing import MockClock

from support.scripted_leaders import AT_ONCE, Leaders, say_nothing
from trionet import DeliveryAbortedError, open_producer
from trionet.client.producer._delivery import Delivery
from trionet.client.producer._producer import Producer
from trionet.testing import MemoryNetwork

#: After so many sends in a row whoever sends makes the turns: each time it is a toss-up.
ENOUGH = 40


async def send_many(producer: Producer, count: int = ENOUGH) -> None:
    for _ in range(count):
        await producer.send("t", b"x")


async def test_response_is_read_by_the_task_that_waits_for_it(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    readers: list[trio.lowlevel.Task] = []
    async with leaders.producer(
        AT_ONCE, on_acknowledgement=lambda _: readers.append(trio.lowlevel.current_task())
    ) as producer:
        await send_many(producer)

    assert ENOUGH == len(readers)
    assert trio.lowlevel.current_task() is readers[-1]


class Steps(trio.abc.Instrument):
    """Counts how often a task has its turn, and the sending task."""

    def __init__(self, task: trio.lowlevel.Task) -> None:
        self.count = self.of_sender = 0
        self._task = task

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.count += task is self._task
        self.of_sender += task.name.endswith("Sender.run")


async def test_task_that_makes_the_turns_waits_once_for_each_response(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    async with leaders.producer(AT_ONCE) as producer:
        await send_many(producer)
        steps = Steps(trio.lowlevel.current_task())
        trio.lowlevel.add_instrument(steps)
        await send_many(producer)
        trio.lowlevel.remove_instrument(steps)

    assert ENOUGH == steps.count
    assert 0 == steps.of_sender, "it is woken between two records"


async def send_nowait(producer: Producer) -> None:
    await producer.send_nowait("t", b"y")


async def send_some_nowait(producer: Producer) -> None:
    delivery = producer.send_nowait("t", b"y")
    await producer.flush()
    assert delivery.is_done


async def enqueue(producer: Producer) -> None:
    await (await producer.enqueue("t", b"y"))


async def send_batch(producer: Producer) -> None:
    await producer.send_batch("t", [b"y", b"y"])


async def send_to_unknown(producer: Producer) -> None:
    await producer.send("unknown", b"y")


async def take_what_cannot_be(producer: Producer) -> None:
    with pytest.raises(trio.WouldBlock):
        await producer.send_nowait("unknown", b"y")
    for _ in range(ENOUGH):
        await trio.lowlevel.checkpoint()
    await producer.send_nowait("unknown", b"y")


async def send_beside_another(producer: Producer) -> None:
    delivery: list[Delivery] = []
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(producer.send, "t", b"y")
            await trio.lowlevel.checkpoint()
            delivery.append(producer.send_nowait("t", b"z"))
            scope.cancel()
    await delivery[0]


@pytest.mark.parametrize(
    "go_on",
    [
        send_nowait,
        send_some_nowait,
        enqueue,
        send_batch,
        send_to_unknown,
        take_what_cannot_be,
        send_beside_another,
    ],
)
async def test_what_follows_an_awaited_record_in_another_way_is_attended_to_at_once(
    autojump_clock: MockClock, network: MemoryNetwork, go_on: Callable[[Producer], Awaitable[None]]
) -> None:
    leaders = Leaders(network, topics={"t": 1, "unknown": 1})
    async with leaders.producer(AT_ONCE) as producer:
        await send_many(producer)
        began_at = trio.current_time()
        await go_on(producer)

        assert began_at == trio.current_time()


async def test_connection_that_is_lost_after_an_awaited_record_is_noticed(
    autojump_clock: MockClock, network: MemoryNetwork, leaders: Leaders
) -> None:
    async with open_producer(leaders.address, AT_ONCE, network=network) as producer:
        async with leaders.listening():
            await send_many(producer)
            assert 1 == producer.statistics()["connection-count"]
        await trio.sleep(1)

        assert 0 == producer.statistics()["connection-count"]


async def test_turns_go_on_when_who_made_them_is_cancelled(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    async with leaders.producer(AT_ONCE) as producer:
        for steps in range(ENOUGH, ENOUGH + 4):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(send_many, producer, 1_000_000)
                for _ in range(steps):
                    await trio.lowlevel.checkpoint()
                nursery.cancel_scope.cancel()
            delivery = producer.send_nowait("t", b"y")
            await trio.sleep(1)

            assert delivery.is_done


async def test_many_tasks_that_wait_for_responses_all_get_theirs(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    async with (
        leaders.producer(AT_ONCE) as producer,
        trio.open_nursery() as nursery,
    ):
        for _ in range(10):
            nursery.start_soon(send_many, producer)

    assert 10 * ENOUGH == len(leaders.values())


async def test_task_outside_the_block_that_makes_the_turns_leaves_at_its_end(
    autojump_clock: MockClock,
    network: MemoryNetwork,
    leaders: Leaders,
    caplog: pytest.LogCaptureFixture,
) -> None:
    errors: list[Exception] = []

    async def send_in_vain(producer: Producer) -> None:
        await send_many(producer)
        leaders.answers = [say_nothing]
        try:
            await producer.send("t", b"y")
        except DeliveryAbortedError as error:
            errors.append(error)

    async with leaders.listening(), trio.open_nursery() as nursery:
        with trio.move_on_after(1):
            async with open_producer(leaders.address, AT_ONCE, network=network) as producer:
                nursery.start_soon(send_in_vain, producer)
                await trio.sleep_forever()

    assert 1 == len(errors)
    assert "the producer has failed" not in caplog.text
