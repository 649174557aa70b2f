"""Failures that nothing looked at: the end of the producer's block raises or logs them."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import attrs
import pytest
import trio
from trio.testing import MockClock

from support.network_clients import with_requests
from support.scripted_leaders import AT_ONCE, Leaders, refusal, say_nothing
from trionet import (
    ApiError,
    DeliveryAbortedError,
    DeliveryTimeoutError,
    SendBatchError,
    TrionetError,
    UndeliveredError,
    open_producer,
)
from trionet.client._topic_partition import TopicPartition
from trionet.client.producer import Acknowledgement
from trionet.client.producer._deliveries import Deliveries
from trionet.client.producer._delivery import Delivery, ProduceRequestResult
from trionet.client.producer._hooks import KINDS_MAX, UnseenFailures
from trionet.client.producer._producer import Producer
from trionet.protocol import error_codes
from trionet.testing import MemoryNetwork

REFUSED = refusal(error_codes.TOPIC_AUTHORIZATION_FAILED)
SHORT = attrs.evolve(
    AT_ONCE, delivery_timeout_seconds=5.0, client=with_requests(timeout_seconds=60.0)
)
ONE_EACH = attrs.evolve(AT_ONCE, batch_bytes=0)
TOGETHER = attrs.evolve(AT_ONCE, linger_seconds=0.01)
T0 = TopicPartition("t", 0)
NO = TrionetError("no")


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """What was logged of records that failed unseen."""
    return lambda: [
        record.getMessage()
        for record in caplog.records
        if (record.name, record.levelno) == ("trionet.client", logging.WARNING)
        and "never awaited" in record.getMessage()
    ]


async def by_enqueue(producer: Producer) -> object:
    return [await producer.enqueue("t", value) for value in (b"a", b"b")]


async def by_send_nowait(producer: Producer) -> object:
    await producer.key_partitions("t")
    return [producer.send_nowait("t", value) for value in (b"a", b"b")]


async def by_enqueue_batch(producer: Producer) -> object:
    return await producer.enqueue_batch("t", [b"a", b"b"])


@pytest.mark.parametrize("take", [by_enqueue, by_send_nowait, by_enqueue_batch])
@pytest.mark.parametrize("is_held", [True, False])
async def test_end_of_the_block_raises_failures_that_were_not_looked_at(
    take: Callable[[Producer], Awaitable[object]],
    is_held: bool,
    autojump_clock: MockClock,
    network: MemoryNetwork,
    leaders: Leaders,
    logged: Callable[[], list[str]],
) -> None:
    """Whether the program still has the deliveries or not; a flush is no look."""
    leaders.answers = [REFUSED] * 2
    async with leaders.listening():
        with pytest.raises(UndeliveredError) as raised:  # noqa: PT012 - of the block's end
            async with open_producer(leaders.address, TOGETHER, network=network) as producer:
                kept = await take(producer)
                if not is_held:
                    del kept
                await producer.flush()

    error = raised.value
    assert 2 == error.records
    [(topic, partition, records, cause)] = error.failures
    assert ("t", 0, 2) == (topic, partition, records)
    assert isinstance(cause, ApiError)
    assert error.__cause__ is cause
    assert (
        "2 records failed, and their deliveries were never awaited: 2 for t-0:"
        " t-0: TOPIC_AUTHORIZATION_FAILED" == str(error)
    )
    assert not error.may_have_been_written
    assert [] == logged()


async def test_records_that_fail_in_the_drain_are_raised(
    autojump_clock: MockClock, network: MemoryNetwork, leaders: Leaders
) -> None:
    """The brokers are gone: it is decided at the end of the block, and not before."""
    async with leaders.listening():
        with pytest.raises(UndeliveredError, match="1 record failed") as raised:  # noqa: PT012
            async with open_producer(leaders.address, SHORT, network=network) as producer:
                await producer.send("t", b"0")
                network.kill_host("10.0.0.1")
                _ = producer.send_nowait("t", b"a")

    assert isinstance(raised.value.failures[0][-1], DeliveryTimeoutError)


async def test_each_partition_and_kind_of_error_is_counted(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    leaders = Leaders(network, topics={"t": 2})
    too_large = refusal(error_codes.MESSAGE_TOO_LARGE)
    async with leaders.listening():
        with pytest.raises(UndeliveredError) as raised:  # noqa: PT012 - of the block's end
            async with open_producer(leaders.address, ONE_EACH, network=network) as producer:
                for partition, answer in ((1, REFUSED), (0, REFUSED), (1, too_large), (1, REFUSED)):
                    leaders.answers = [answer]
                    _ = await producer.enqueue("t", b"a", partition=partition)
                    await producer.flush()

    assert [
        ("t", 1, 2, "ApiError"),
        ("t", 0, 1, "ApiError"),
        ("t", 1, 1, "RecordTooLargeError"),
    ] == [(*each[:3], type(each[3]).__name__) for each in raised.value.failures]
    assert 4 == raised.value.records


def by_error(delivery: Delivery) -> None:
    assert isinstance(delivery.error, ApiError)


def by_result(delivery: Delivery) -> None:
    with pytest.raises(ApiError):
        delivery.result()


def by_offset(delivery: Delivery) -> None:
    with pytest.raises(ApiError):
        _ = delivery.offset


@pytest.mark.parametrize("look", [by_error, by_result, by_offset])
async def test_failure_that_was_looked_at_is_not_raised_again(
    look: Callable[[Delivery], None],
    autojump_clock: MockClock,
    leaders: Leaders,
) -> None:
    leaders.answers = [REFUSED]
    async with leaders.producer(AT_ONCE) as producer:
        delivery = await producer.enqueue("t", b"a")
        await producer.flush()
        for _ in range(2):
            look(delivery)


async def test_delivery_that_is_awaited_has_been_looked_at(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    leaders.answers = [REFUSED]
    async with leaders.producer(AT_ONCE) as producer:
        delivery = await producer.enqueue("t", b"a")
        with pytest.raises(ApiError):
            await delivery


async def test_asking_whether_it_is_done_is_no_look(
    autojump_clock: MockClock, network: MemoryNetwork, leaders: Leaders
) -> None:
    leaders.answers = [REFUSED]
    async with leaders.listening():
        with pytest.raises(UndeliveredError):  # noqa: PT012 - of the block's end
            async with open_producer(leaders.address, AT_ONCE, network=network) as producer:
                delivery = await producer.enqueue("t", b"a")
                await producer.flush()
                assert delivery.is_done
                assert "done" in repr(delivery)


def by_failures(deliveries: Deliveries) -> None:
    assert 3 == len(deliveries.failures())


def by_each(deliveries: Deliveries) -> None:
    assert all(each.error is not None for each in deliveries)


@pytest.mark.parametrize("look", [by_failures, by_each])
async def test_look_at_all_deliveries_of_a_batch_is_one_at_each(
    look: Callable[[Deliveries], None],
    autojump_clock: MockClock,
    leaders: Leaders,
) -> None:
    leaders.answers = [REFUSED]
    async with leaders.producer(AT_ONCE) as producer:
        deliveries = await producer.enqueue_batch("t", [b"a", b"b", b"c"])
        await producer.flush()
        look(deliveries)


async def test_look_at_one_record_says_nothing_of_the_others_in_its_batch(
    autojump_clock: MockClock, network: MemoryNetwork, leaders: Leaders
) -> None:
    """Another task's ``send`` may share a batch with what was enqueued here."""
    leaders.answers = [REFUSED]
    async with leaders.listening():
        with pytest.raises(UndeliveredError) as raised:  # noqa: PT012 - of the block's end
            async with open_producer(leaders.address, TOGETHER, network=network) as producer:
                await producer.enqueue_batch("t", [b"a", b"b"])
                with pytest.raises(ApiError):
                    await producer.send("t", b"c")

    assert 2 == raised.value.records
    assert 1 == len(leaders.batches)


async def test_calls_that_raise_leave_nothing_to_be_raised_at_the_end(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    leaders.answers = [REFUSED] * 2
    async with leaders.producer(AT_ONCE) as producer:
        with pytest.raises(ApiError):
            await producer.send("t", b"a")
        with pytest.raises(SendBatchError):
            await producer.send_batch("t", [b"b", b"c"])


async def test_task_outside_the_block_that_awaits_a_delivery_gets_its_error(
    autojump_clock: MockClock, network: MemoryNetwork, leaders: Leaders
) -> None:
    """Also where that is decided by the drain at the end of the block."""
    seen: list[Exception] = []

    async def awaiting(delivery: Delivery) -> None:
        try:
            await delivery
        except ApiError as error:
            seen.append(error)

    lingering = attrs.evolve(AT_ONCE, linger_seconds=60.0)
    async with (
        leaders.listening(),
        trio.open_nursery() as nursery,
        open_producer(leaders.address, lingering, network=network) as producer,
    ):
        leaders.answers = [REFUSED]
        nursery.start_soon(awaiting, await producer.enqueue("t", b"a"))
        await trio.sleep(1)

    assert [ApiError] == [type(error) for error in seen]


async def test_records_whose_call_was_cancelled_are_not_raised(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    """What was taken back, and what was on its way: nothing can look at either."""
    async with leaders.producer(SHORT) as producer:
        await producer.send("t", b"0")
        leaders.answers = [say_nothing]
        for send in (producer.send("t", b"a"), producer.send_batch("t", [b"b", b"c"])):
            with trio.move_on_after(1) as scope:
                await send
            assert scope.cancelled_caught
        await trio.sleep(10)


async def test_on_acknowledgement_has_seen_every_failure(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    """It is the place for them, as the callback of Kafka's producer is."""
    seen: list[Acknowledgement] = []
    leaders.answers = [REFUSED]
    async with leaders.producer(AT_ONCE, on_acknowledgement=seen.append) as producer:
        _ = await producer.enqueue("t", b"a")

    assert [ApiError] == [type(each.error) for each in seen]


async def test_error_of_the_block_stays_and_failures_are_logged_once(
    autojump_clock: MockClock,
    network: MemoryNetwork,
    leaders: Leaders,
    logged: Callable[[], list[str]],
) -> None:
    """Those from before, and records that were not sent because the block ended."""
    leaders.answers = [REFUSED, say_nothing]
    one_each = attrs.evolve(ONE_EACH, client=with_requests(in_flight_max=1))
    async with leaders.listening():
        with pytest.raises(KeyError):  # noqa: PT012 - of the block's end
            async with open_producer(leaders.address, one_each, network=network) as producer:
                _ = await producer.enqueue("t", b"a")
                await producer.flush()
                _ = [producer.send_nowait("t", value) for value in (b"b", b"c")]
                raise KeyError

    [text] = logged()
    assert "3 records failed" in text
    assert "TOPIC_AUTHORIZATION_FAILED" in text
    assert "the producer was closed before the record was sent" in text


async def test_cancellation_of_the_block_logs_what_was_not_sent(
    autojump_clock: MockClock,
    network: MemoryNetwork,
    leaders: Leaders,
    logged: Callable[[], list[str]],
) -> None:
    lingering = attrs.evolve(AT_ONCE, linger_seconds=60.0)
    async with leaders.listening():
        with trio.move_on_after(1):
            async with open_producer(leaders.address, lingering, network=network) as producer:
                delivery = await producer.enqueue("t", b"a")
                await producer.send("t", b"b")

    [text] = logged()
    assert "1 record failed" in text
    assert isinstance(delivery.error, DeliveryAbortedError)


async def test_cancellation_with_nothing_left_logs_nothing(
    autojump_clock: MockClock,
    network: MemoryNetwork,
    leaders: Leaders,
    logged: Callable[[], list[str]],
) -> None:
    """The records of calls that were cancelled were taken back with them."""
    lingering = attrs.evolve(AT_ONCE, linger_seconds=60.0)
    async with leaders.listening():
        with trio.move_on_after(1):
            async with open_producer(leaders.address, lingering, network=network) as producer:
                await producer.send_batch("t", [b"a", b"b"])

    assert [] == logged()


async def test_error_that_a_call_has_raised_is_not_raised_again_for_each_record(
    autojump_clock: MockClock,
    network: MemoryNetwork,
    leaders: Leaders,
    logged: Callable[[], list[str]],
) -> None:
    """What ended the producer is why all its records failed."""
    fatal = refusal(error_codes.CLUSTER_AUTHORIZATION_FAILED)
    one_each = attrs.evolve(ONE_EACH, client=with_requests(in_flight_max=1))
    async with leaders.listening():
        async with open_producer(leaders.address, one_each, network=network) as producer:
            leaders.answers = [fatal]
            _ = [await producer.enqueue("t", value) for value in (b"a", b"b")]
            with pytest.raises(ApiError, match="CLUSTER_AUTHORIZATION_FAILED"):
                await producer.flush()

        with pytest.raises(ApiError, match="CLUSTER_AUTHORIZATION_FAILED"):  # noqa: PT012
            async with open_producer(leaders.address, one_each, network=network) as producer:
                leaders.answers = [fatal]
                _ = [await producer.enqueue("t", value) for value in (b"a", b"b")]

    assert [] == logged()


def test_look_at_a_record_stays_one_when_its_batch_is_split() -> None:
    """Its call was cancelled while the batch was on its way, which is too large for its topic."""
    batch, parts = ProduceRequestResult(T0), [ProduceRequestResult(T0), ProduceRequestResult(T0)]
    batch.mark_seen(3)
    batch.split([(0, parts[0]), (2, parts[1])])

    assert [0, 1] == [part.seen_count for part in parts]


# What is kept of them.


def test_failures_of_many_batches_are_one_entry() -> None:
    """A producer may run for weeks and see many of them."""
    unseen_failures = UnseenFailures()
    entries = {unseen_failures.add(T0, TrionetError("no"), 2) for _ in range(1000)}

    error = unseen_failures.error()
    assert error is not None
    assert 1 == len(entries)
    assert [("t", 0, 2000)] == [each[:3] for each in error.failures]


def test_only_so_many_kinds_are_kept_apart() -> None:
    unseen_failures = UnseenFailures()
    for number in range(KINDS_MAX + 7):
        unseen_failures.add(TopicPartition("t", number), NO, 2)

    error = unseen_failures.error()
    assert error is not None
    assert KINDS_MAX == len(error.failures)
    assert 2 * (KINDS_MAX + 7) == error.records
    assert f"and {error.records - 6} more" in str(error)


def test_kinds_that_were_looked_at_make_room_for_others() -> None:
    unseen_failures = UnseenFailures()
    for number in range(3 * KINDS_MAX):
        outcome = ProduceRequestResult(TopicPartition("t", number))
        outcome.fail(NO)
        outcome.unseen = unseen_failures.add(outcome.topic_partition, NO, 1)
        outcome.mark_seen(0)
    unseen_failures.add(T0, NO, 1)

    error = unseen_failures.error()
    assert error is not None
    assert [("t", 0, 1, NO)] == list(error.failures)
