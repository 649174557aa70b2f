"""Who makes a producer's turns: its own task, or one that waits for a record's answer."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from support.scripted_leaders import AT_ONCE, Leaders, say_nothing
from trionet import DeliveryAbortedError, open_producer
from trionet.client.producer.producer import Producer
from trionet.testing import MemoryNetwork

#: After so many sends in a row whoever sends makes the turns: each time it is a toss-up.
ENOUGH = 40


async def send_many(producer: Producer, count: int = ENOUGH) -> None:
    for _ in range(count):
        await producer.send("t", b"x")


async def test_answer_is_read_by_the_task_that_waits_for_it(
    autojump_clock: MockClock, network: MemoryNetwork, leaders: Leaders
) -> None:
    readers: list[trio.lowlevel.Task] = []
    async with (
        leaders.listening(),
        open_producer(
            leaders.address,
            AT_ONCE,
            network=network,
            on_acknowledgement=lambda _: readers.append(trio.lowlevel.current_task()),
        ) as producer,
    ):
        await send_many(producer)

    assert ENOUGH == len(readers)
    assert trio.lowlevel.current_task() is readers[-1]


class Steps(trio.abc.Instrument):
    """Counts how often a task has its turn."""

    def __init__(self, task: trio.lowlevel.Task) -> None:
        self.count = 0
        self._task = task

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.count += task is self._task


async def test_task_that_makes_the_turns_waits_once_for_each_answer(
    autojump_clock: MockClock, network: MemoryNetwork, leaders: Leaders
) -> None:
    async with (
        leaders.listening(),
        open_producer(leaders.address, AT_ONCE, network=network) as producer,
    ):
        await send_many(producer)
        steps = Steps(trio.lowlevel.current_task())
        trio.lowlevel.add_instrument(steps)
        await send_many(producer)
        trio.lowlevel.remove_instrument(steps)

    assert ENOUGH == steps.count


async def test_turns_go_on_when_who_made_them_is_cancelled(
    autojump_clock: MockClock, network: MemoryNetwork, leaders: Leaders
) -> None:
    async with (
        leaders.listening(),
        open_producer(leaders.address, AT_ONCE, network=network) as producer,
    ):
        for steps in range(ENOUGH, ENOUGH + 4):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(send_many, producer, 1_000_000)
                for _ in range(steps):
                    await trio.lowlevel.checkpoint()
                nursery.cancel_scope.cancel()
            delivery = producer.send_nowait("t", b"y")
            await trio.sleep(1)

            assert delivery.is_done


async def test_many_who_wait_for_answers_all_get_theirs(
    autojump_clock: MockClock, network: MemoryNetwork, leaders: Leaders
) -> None:
    async with (
        leaders.listening(),
        open_producer(leaders.address, AT_ONCE, network=network) as producer,
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
