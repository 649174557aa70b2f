from __future__ import annotations

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from support.accumulators import T0, TOPIC, accumulator, cluster, done, drained
from support.counted_calls import counted_calls
from trionet.client.producer._deliveries import Deliveries
from trionet.client.producer._delivery import Delivery, RecordMetadata
from trionet.client.producer.batching._accumulator import RecordAccumulator
from trionet.errors import ApiError, TrionetError
from trionet.protocol import error_codes

ONE = cluster(1)


def append(records: RecordAccumulator, value: bytes = b"x", timestamp: int = 1000) -> Delivery:
    return records.append(TOPIC, 0, timestamp, None, value, (), 0.0)


async def test_a_delivery_is_awaited_by_any_number_of_tasks_any_number_of_times() -> None:
    records = accumulator(ONE)
    first, second = append(records), append(records, timestamp=1001)
    [batch] = drained(records, ONE, 0.0)
    found: list[RecordMetadata] = []

    async def wait(delivery: Delivery) -> None:
        found.append(await delivery)
        found.append(await delivery)

    assert not first.is_done
    with pytest.raises(trio.WouldBlock):
        first.result()
    with pytest.raises(trio.WouldBlock):
        _ = first.offset
    async with trio.open_nursery() as nursery:
        for delivery in (first, first, second):
            nursery.start_soon(wait, delivery)
        await wait_all_tasks_blocked()

        assert [] == found

        done(records, batch, 5)

    expected = [(TOPIC, 0, 5, 1000)] * 4 + [(TOPIC, 0, 6, 1001)] * 2
    assert expected == sorted(found)
    assert second.is_done
    assert found[0].topic == TOPIC
    assert (0, 6, 1001) == second.result()[1:]
    assert [5, 6] == [first.offset, second.offset]


async def test_awaiting_what_is_decided_is_a_checkpoint() -> None:
    records = accumulator(ONE)
    delivery = append(records)
    done(records, drained(records, ONE, 0.0)[0])

    with trio.testing.assert_checkpoints():
        await delivery
    with trio.CancelScope() as scope:
        scope.cancel(reason="a test")
        await delivery

    assert scope.cancelled_caught


async def test_a_cancelled_wait_changes_nothing_for_others() -> None:
    records = accumulator(ONE)
    delivery = append(records)
    [batch] = drained(records, ONE, 0.0)
    found: list[int] = []

    async def wait() -> None:
        found.append((await delivery).offset)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        with trio.CancelScope() as scope:
            nursery.start_soon(wait)
            await wait_all_tasks_blocked()
            scope.cancel(reason="a test")
            await delivery

        assert scope.cancelled_caught

        done(records, batch, 3)

    assert [3, 3] == found


def test_a_brokers_time_is_everyones() -> None:
    """The topic has ``message.timestamp.type=LogAppendTime``."""
    records = accumulator(ONE)
    deliveries = [append(records), append(records, timestamp=1001)]
    [batch] = drained(records, ONE, 0.0)

    assert batch.outcome.complete(5, 2000)

    assert [(TOPIC, 0, 5, 2000), (TOPIC, 0, 6, 2000)] == [each.result() for each in deliveries]


def test_without_acknowledgement_there_is_no_offset() -> None:
    """``acks=0``: no broker tells."""
    records = accumulator(ONE)
    deliveries = [append(records), append(records)]
    [batch] = drained(records, ONE, 0.0)
    batch.outcome.complete(-1)

    assert [-1, -1] == [each.result().offset for each in deliveries]
    assert [-1, -1] == [each.offset for each in deliveries]


def test_what_is_decided_stays() -> None:
    """D11, D12: a late response changes nothing, whatever it says."""
    records = accumulator(ONE)
    delivery = append(records)
    [batch] = drained(records, ONE, 0.0)

    assert batch.outcome.fail(TrionetError("late"))
    assert not batch.outcome.complete(5)
    assert not batch.outcome.fail(TrionetError("later"))
    assert not batch.outcome.fail(TrionetError("later"), {0: TrionetError("latest")})
    for _ in range(3):
        with pytest.raises(TrionetError, match=r"^late$"):
            delivery.result()
        with pytest.raises(TrionetError, match=r"^late$"):
            _ = delivery.offset


def test_an_error_that_many_see_is_each_ones_own() -> None:
    records = accumulator(ONE)
    delivery = append(records)
    error = TrionetError("no")
    drained(records, ONE, 0.0)[0].outcome.fail(error)
    seen = []
    for number in range(3):
        try:
            raise KeyError(number)
        except KeyError:
            with pytest.raises(TrionetError) as raised:
                delivery.result()
        seen.append(raised.value)

    assert ["0", "1", "2"] == [str(each.__context__) for each in seen]
    assert error.__traceback__ is None
    assert error.__context__ is None


def test_errors_of_records_reach_their_deliveries() -> None:
    """D19: what was in the same batch is told so; a record that was taken back is not counted."""
    records = accumulator(ONE)
    deliveries = [append(records, b"%d" % number) for number in range(4)]
    records.withdraw(deliveries[0])
    [batch] = drained(records, ONE, 0.0)
    of_one = ApiError(error_codes.INVALID_RECORD, "no key")
    beside = ApiError(error_codes.INVALID_RECORD, "beside it")
    batch.outcome.fail(beside, {1: of_one})

    for delivery, text in zip(deliveries[1:], ["beside it", "no key", "beside it"], strict=True):
        with pytest.raises(ApiError, match=text):
            delivery.result()


def test_records_that_were_taken_back_cost_the_others_little() -> None:
    """Each delivery has to know how many there were before it."""

    def calls(count: int) -> int:
        records = accumulator(ONE, batch_bytes=1_000_000)
        deliveries = [append(records) for _ in range(2 * count)]
        for each in deliveries[::2]:
            records.withdraw(each)
        [batch] = drained(records, ONE, 0.0)
        done(records, batch, 5)
        with counted_calls() as counted:
            assert [*range(5, 5 + count)] == [each.offset for each in deliveries[1::2]]
        return counted[0]

    assert calls(400) < 6 * calls(100)


async def test_waiting_for_a_batch_goes_on_when_it_is_split() -> None:
    """K11: a flush waits for the records, whatever becomes of the batch they are in."""
    records = accumulator(ONE)
    deliveries = [append(records, b"%d" % number) for number in range(8)]
    outcomes = records.queues.begin_flush()
    [batch] = drained(records, ONE, 0.0)
    found: list[str] = []

    async def flush() -> None:
        for outcome in outcomes:
            await outcome.until_done()
        found.append("flushed")

    async def wait() -> None:
        found.append(str((await deliveries[-1]).offset))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(flush)
        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        records.queues.split_and_reenqueue(batch, 0.0)
        records.queues.deallocate(batch)
        await wait_all_tasks_blocked()
        first, second = (drained(records, ONE, 0.0)[0] for _ in range(2))
        done(records, second, 50)
        await wait_all_tasks_blocked()

        assert ["53"] == found

        done(records, first, 10)

    assert ["53", "flushed"] == found


def test_a_delivery_says_what_it_is() -> None:
    records = accumulator(ONE)
    delivery = append(records)

    assert f"<Delivery to {T0}, pending>" == repr(delivery)

    done(records, drained(records, ONE, 0.0)[0])

    assert f"<Delivery to {T0}, done>" == repr(delivery)


async def test_wait_is_the_same_as_awaiting_a_delivery() -> None:
    records = accumulator(ONE)
    delivery = append(records)
    done(records, drained(records, ONE, 0.0)[0], 7)

    assert await delivery == await delivery.wait()
    assert 7 == (await delivery.wait()).offset


async def test_deliveries_wait_for_all_of_their_records_and_raise_nothing() -> None:
    records = accumulator(ONE)
    deliveries = Deliveries(1000)
    for number in range(2):
        delivery = append(records, b"%d" % number)
        deliveries.add(delivery.outcome, delivery.index, 1)
    found: list[str] = []

    async def wait() -> None:
        await deliveries.wait()
        found.append("decided")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        assert [] == found
        [batch] = drained(records, ONE, 0.0)
        batch.outcome.fail(ApiError(error_codes.INVALID_RECORD, "no key"))

    assert ["decided"] == found
    assert 2 == len(deliveries.failures())
    await deliveries.wait()


def test_only_a_producer_creates_deliveries() -> None:
    records = accumulator(ONE)
    delivery = append(records)

    with pytest.raises(TypeError, match="created only by a producer's methods"):
        _ = Delivery(None, delivery.outcome, 0, 0)
