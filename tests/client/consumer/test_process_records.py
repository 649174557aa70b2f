"""Records of a group, handled several at a time: each at least once, committed up to the first
that has not finished.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial, wraps
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from support.eventually import eventually
from trionet import (
    Broker,
    ConfigError,
    Consumer,
    ConsumerRecord,
    TopicPartition,
    open_admin,
    open_broker,
    process_records,
)
from trionet.client.consumer.coordinator._commits import REPEAT_SECONDS
from trionet.testing import BrokerControl, MemoryNetwork, control

Handler = Callable[[ConsumerRecord], Awaitable[object]]
SETTINGS = {
    "group.id": "g",
    "auto.offset.reset": "earliest",
    "heartbeat.interval.ms": "20",
    "fetch.max.wait.ms": "10",
}


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with open_broker() as broker:
        yield broker


@pytest.fixture
def controls(broker: Broker) -> BrokerControl:
    return control(broker)


async def seed(controls: BrokerControl, count: int, partitions: int = 1) -> None:
    """Records 0, 1, ... with the keys a, b, c in turn, the same number of each partition."""
    await controls.create_topic("t", partitions)
    records = [
        {"partition": partition, "value": b"%d" % number, "key": b"abc"[number % 3 :][:1]}
        for partition in range(partitions)
        for number in range(count)
    ]
    await controls.seed("t", records)


@asynccontextmanager
async def processing(broker: Broker, handler: Handler, **options: Any) -> AsyncIterator[Consumer]:
    """Records are processed meanwhile, and no longer after the block."""
    options = {"concurrency": 4, "auto_commit_interval_ms": 3_600_000, **options}
    run = partial(process_records, broker.bootstrap_servers, "t", handler, SETTINGS, **options)
    async with trio.open_nursery() as nursery:
        consumer = await nursery.start(run)
        yield consumer
        nursery.cancel_scope.cancel()


class Handled:
    """Counts what was handled, and waits for a number of it."""

    def __init__(self) -> None:
        self.values: list[int] = []
        self._changed = trio.Event()

    def add(self, record: ConsumerRecord) -> None:
        self.values.append(int(record.value or b""))
        self._changed.set()
        self._changed = trio.Event()

    async def until(self, count: int) -> None:
        while len(self.values) < count:
            await self._changed.wait()


def committed(controls: BrokerControl, partition: int = 0) -> int | None:
    return controls.group("g").offsets.get(("t", partition))


async def test_as_many_handlers_run_as_may(broker: Broker, controls: BrokerControl) -> None:
    await seed(controls, 50)
    handled, running, most = Handled(), 0, 0
    are_all_there = trio.Event()

    async def handle(record: ConsumerRecord) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 4:
            are_all_there.set()
        await are_all_there.wait()
        await trio.lowlevel.checkpoint()
        running -= 1
        handled.add(record)

    async with processing(broker, handle):
        await handled.until(50)

    assert 4 == most
    assert list(range(50)) == sorted(handled.values)
    assert 50 == committed(controls)


async def test_records_finish_in_any_order_and_are_committed_up_to_the_first_unfinished(
    broker: Broker, controls: BrokerControl
) -> None:
    await seed(controls, 20)
    handled, hang = Handled(), trio.Event()

    async def handle(record: ConsumerRecord) -> None:
        if record.offset == 5:
            await hang.wait()
        handled.add(record)

    async with processing(broker, handle, auto_commit_interval_ms=10):
        await handled.until(19)
        await controls.wait_for_offset("g", "t", 5)
        assert 5 == committed(controls)
        hang.set()
        await controls.wait_for_offset("g", "t", 20)


async def test_an_offset_that_a_delayed_commit_set_back_is_committed_again(
    autojump_clock: MockClock,
) -> None:
    network = MemoryNetwork()
    partition = TopicPartition("t", 0)
    async with open_broker(network=network) as broker:
        controls = control(broker)
        await seed(controls, 3)

        async def handle(record: ConsumerRecord) -> None:
            await trio.lowlevel.checkpoint()

        async with processing(
            broker, handle, network=network, auto_commit_interval_ms=5_000
        ) as consumer:
            await trio.sleep(10)
            assert {("t", 0): 3} == controls.group("g").offsets
            await consumer.commit({partition: 1})
            await trio.sleep(REPEAT_SECONDS + 5)

            assert {("t", 0): 3} == controls.group("g").offsets


async def test_what_has_finished_is_committed_when_it_is_cancelled(
    broker: Broker, controls: BrokerControl
) -> None:
    await seed(controls, 20)
    handled = Handled()

    async def handle(record: ConsumerRecord) -> None:
        if record.offset == 7:
            await trio.sleep_forever()
        handled.add(record)

    async with processing(broker, handle):
        await handled.until(19)

    assert 7 == committed(controls)


async def test_an_error_of_a_handler_is_raised_and_nothing_after_its_record_is_committed(
    broker: Broker, controls: BrokerControl
) -> None:
    await seed(controls, 20)
    handled = Handled()

    async def handle(record: ConsumerRecord) -> None:
        if record.offset == 3:
            await handled.until(19)
            raise ZeroDivisionError("no table 4")
        handled.add(record)

    with pytest.raises(ZeroDivisionError, match="no table 4"):
        await process_records(broker.bootstrap_servers, "t", handle, SETTINGS, concurrency=4)
    assert 3 == committed(controls)


async def test_the_next_run_begins_with_what_has_not_finished(
    broker: Broker, controls: BrokerControl
) -> None:
    await seed(controls, 30)
    handled = Handled()

    async def handle(record: ConsumerRecord) -> None:
        for _ in range(record.offset % 4):
            await trio.lowlevel.checkpoint()
        handled.add(record)
        if len(handled.values) % 8 == 0 or len(set(handled.values)) == 30:
            raise ZeroDivisionError

    while len(set(handled.values)) < 30:
        with pytest.raises(ZeroDivisionError):
            await process_records(broker.bootstrap_servers, "t", handle, SETTINGS, concurrency=3)
        assert set(range(committed(controls) or 0)) <= set(handled.values)


@pytest.mark.parametrize("order", ["key", "partition"])
async def test_records_of_a_key_or_a_partition_are_handled_in_order(
    broker: Broker, controls: BrokerControl, order: str
) -> None:
    await seed(controls, 60, partitions=2)
    handled, lanes = Handled(), Counter[object]()
    found: dict[object, list[int]] = {}

    async def handle(record: ConsumerRecord) -> None:
        lane = (record.partition, record.key if order == "key" else None)
        lanes[lane] += 1
        assert 1 == lanes[lane]
        for _ in range(record.offset % 3):
            await trio.lowlevel.checkpoint()
        lanes[lane] -= 1
        found.setdefault(lane, []).append(record.offset)
        handled.add(record)

    async with processing(broker, handle, order=order):
        await handled.until(120)

    assert {"key": 6, "partition": 2}[order] == len(found)
    assert [] == [each for each in found.values() if sorted(each) != each]


async def test_reading_waits_while_enough_records_wait(
    broker: Broker, controls: BrokerControl
) -> None:
    await seed(controls, 500)

    async def hang(_: ConsumerRecord) -> None:
        await trio.sleep_forever()

    async def paused() -> frozenset[TopicPartition]:
        await trio.lowlevel.checkpoint()
        return consumer.paused

    async with processing(broker, hang, concurrency=2, max_poll_records=5) as consumer:
        await eventually(paused, bool)
        assert (consumer.position(TopicPartition("t", 0)) or 0) <= 2 + 2 + 5


async def test_reading_goes_on_when_there_is_room(broker: Broker, controls: BrokerControl) -> None:
    await seed(controls, 200, partitions=2)
    handled = Handled()

    async def handle(record: ConsumerRecord) -> None:
        await trio.lowlevel.checkpoint()
        handled.add(record)

    async with processing(broker, handle, concurrency=1, max_poll_records=3):
        await handled.until(400)


# Rebalances.


async def test_a_revoked_partition_finishes_and_no_record_is_handled_twice(
    broker: Broker, controls: BrokerControl
) -> None:
    await seed(controls, 100, partitions=2)
    handled, may_go_on = Handled(), trio.Event()
    places: list[tuple[int, int]] = []

    async def handle(record: ConsumerRecord) -> None:
        if len(handled.values) >= 20:
            await may_go_on.wait()
        await trio.lowlevel.checkpoint()
        places.append((record.partition, record.offset))
        handled.add(record)

    async with processing(broker, handle), trio.open_nursery() as nursery:
        await handled.until(20)
        second = partial(
            process_records, broker.bootstrap_servers, "t", handle, SETTINGS, concurrency=4
        )
        await nursery.start(second)
        await controls.wait_for_group("g", "PreparingRebalance")
        may_go_on.set()
        await controls.wait_for_group("g", "Stable", members=2)
        await handled.until(200)
        nursery.cancel_scope.cancel()

    assert {1} == set(Counter(places).values())
    assert (100, 100) == (committed(controls, 0), committed(controls, 1))


async def test_handlers_of_a_lost_partition_are_cancelled_and_commit_nothing(
    broker: Broker, controls: BrokerControl
) -> None:
    await seed(controls, 10)
    handled, cancelled, hang = Handled(), Handled(), True

    async def handle(record: ConsumerRecord) -> None:
        if record.offset == 0 and hang:
            try:
                await trio.sleep_forever()
            finally:
                cancelled.add(record)
        handled.add(record)

    async with processing(broker, handle):
        await handled.until(9)
        hang = False
        controls.expire_members("g")
        await cancelled.until(1)
        assert committed(controls) is None
        await handled.until(19)

    assert {*range(10)} == set(handled.values)
    assert 10 == committed(controls)


async def test_a_handler_that_does_not_end_is_cancelled_so_that_the_group_goes_on(
    broker: Broker, controls: BrokerControl
) -> None:
    await seed(controls, 2, partitions=2)
    handled = Handled()

    async def handle(_: ConsumerRecord) -> None:
        await trio.sleep_forever()

    async def second(record: ConsumerRecord) -> None:
        handled.add(record)
        await trio.lowlevel.checkpoint()

    limits = {"max_poll_interval_ms": 400, "session_timeout_ms": 6000}
    async with processing(broker, handle, **limits):
        await controls.wait_for_group("g", "Stable", members=1)
        async with processing(broker, second, **limits):
            await handled.until(1)


async def test_a_deleted_topic_holds_up_no_commit_of_the_others(
    broker: Broker, controls: BrokerControl
) -> None:
    await seed(controls, 10)
    await controls.seed("gone", [b"0"])
    begun, is_deleted = trio.Event(), trio.Event()

    async def handle(record: ConsumerRecord) -> None:
        if record.topic == "gone":
            begun.set()
        await is_deleted.wait()

    async with trio.open_nursery() as nursery:
        run = partial(process_records, broker.bootstrap_servers, ["t", "gone"], handler=handle)
        limits = {"auto.commit.interval.ms": 10, "metadata.max.age.ms": 50}
        nursery.start_soon(partial(run, config={**SETTINGS, **limits}, concurrency=20))
        await begun.wait()
        async with open_admin(broker.bootstrap_servers) as admin:
            await admin.delete_topics(["gone"])
        is_deleted.set()
        await controls.wait_for_offset("g", "t", 10)
        nursery.cancel_scope.cancel()


# Arguments.


async def test_a_plain_function_is_refused(broker: Broker, controls: BrokerControl) -> None:
    await seed(controls, 1)
    handler: Any = len

    with pytest.raises(TypeError, match="len> is not an async function: write async def"):
        await process_records(broker.bootstrap_servers, "t", handler, SETTINGS, concurrency=4)
    assert committed(controls) in {None, 0}


async def nothing(_: ConsumerRecord) -> None:
    await trio.lowlevel.checkpoint()


class Till:
    def bill(self, _: ConsumerRecord) -> None: ...


def bill(_: ConsumerRecord, _currency: str = "") -> None: ...


@pytest.mark.parametrize("handler", [bill, partial(bill, _currency="EUR"), Till().bill, None])
async def test_a_function_without_async_is_refused_before_there_is_a_record(handler: Any) -> None:
    with pytest.raises(TypeError, match=r"^handler .* is not an async function: write async def"):
        await process_records("127.0.0.1:1", "t", handler, SETTINGS, concurrency=4)


def in_thread(blocking: Callable[[ConsumerRecord], object]) -> Handler:
    """Make an async function of one that blocks, as a decorator does."""

    @wraps(blocking)
    async def wrapped(record: ConsumerRecord) -> None:
        await trio.to_thread.run_sync(blocking, record)

    return wrapped


def timed(handler: Handler) -> Handler:
    """Wrap an async function by one that is none."""

    @wraps(handler)
    def wrapped(record: ConsumerRecord) -> Awaitable[object]:
        return handler(record)

    return wrapped


@pytest.mark.parametrize(
    "handler",
    [lambda record: nothing(record), in_thread(bill), timed(nothing)],  # noqa: PLW0108
)
async def test_a_function_may_return_what_an_async_one_returns(
    broker: Broker, controls: BrokerControl, handler: Handler
) -> None:
    await seed(controls, 1)
    async with trio.open_nursery() as nursery:
        run = partial(process_records, concurrency=4)
        nursery.start_soon(run, broker.bootstrap_servers, "t", handler, SETTINGS)
        await controls.wait_for_offset("g", "t", 1)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"concurrency": 0}, ValueError, "concurrency = 0 must be 1 or more"),
        ({"concurrency": 1, "order": "keys"}, ValueError, "order = 'keys' must be 'key', 'part"),
        ({"concurrency": "4"}, TypeError, "concurrency must be int, not str: '4'"),
        ({"concurrency": 1, "order": []}, ValueError, r"order = \[\] must be 'key', 'part"),
        ({"concurrency": 1}, ConfigError, "commits offsets for a group; set group.id"),
        (
            {"concurrency": 1, "group_id": "g", "enable_auto_commit": False},
            ConfigError,
            "commits what its handlers have finished; leave out enable.auto.commit, or use",
        ),
    ],
)
async def test_what_cannot_be_is_refused(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        await process_records("127.0.0.1:1", "t", nothing, **options)
