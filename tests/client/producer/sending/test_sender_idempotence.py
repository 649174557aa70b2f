"""Batches that are lost, refused or split on their way to a leader that counts them."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
import trio
from trio.testing import MockClock

from support.network_clients import with_requests
from support.scripted_leaders import (
    AT_ONCE,
    Batch,
    Leaders,
    hang_up,
    refusal,
    refused,
    say_nothing,
)
from support.scripted_node import Hangup
from trionet import (
    ApiError,
    DeliveryTimeoutError,
    RecordTooLargeError,
    SendBatchError,
    TrionetError,
)
from trionet.client._backoff import ExponentialBackoff
from trionet.client.producer import Acknowledgement
from trionet.client.producer._settings import ProducerSettings
from trionet.client.producer.transactions._sequences import KNOWN_SECONDS
from trionet.protocol import error_codes

ONE_EACH = attrs.evolve(AT_ONCE, batch_bytes=0)


@pytest.mark.parametrize("lost", range(5))
async def test_five_in_flight_stay_in_order_whichever_is_lost(
    autojump_clock: MockClock, leaders: Leaders, lost: int
) -> None:
    """D20: the later ones are refused as out of order, and all are sent again in turn."""
    async with leaders.producer(ONE_EACH) as producer:
        await producer.send("t", b"first")
        leaders.answers = [leaders.write] * lost + [refusal(error_codes.NOT_ENOUGH_REPLICAS)]
        deliveries = [producer.send_nowait("t", b"%d" % each) for each in range(8)]
        assert list(range(1, 9)) == [(await each).offset for each in deliveries]

    assert [b"first", *(b"%d" % each for each in range(8))] == leaders.values()


@pytest.mark.parametrize("lost", range(5))
async def test_batches_whose_responses_are_lost_are_not_written_twice(
    autojump_clock: MockClock, leaders: Leaders, lost: int
) -> None:
    """D20: the leader has them, and says where they are."""
    async with leaders.producer(ONE_EACH) as producer:
        await producer.send("t", b"first")
        leaders.answers = [leaders.write] * lost + [leaders.write_and(hang_up)]
        deliveries = [producer.send_nowait("t", b"%d" % each) for each in range(8)]
        assert list(range(1, 9)) == [(await each).offset for each in deliveries]

    assert [b"first", *(b"%d" % each for each in range(8))] == leaders.values()


async def test_duplicate_that_the_leader_does_not_remember_was_written(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    """D20: where, nobody can tell any more."""
    leaders.answers = [leaders.write_and(refusal(error_codes.DUPLICATE_SEQUENCE_NUMBER))]
    async with leaders.producer(AT_ONCE) as producer:
        assert -1 == (await producer.send("t", b"a")).offset
        assert 1 == (await producer.send("t", b"b")).offset

    assert [(0, 0), (0, 1)] == leaders.numbers()


@pytest.mark.parametrize("written", range(6))
async def test_batches_that_a_restarted_leader_has_are_not_written_twice(
    autojump_clock: MockClock, leaders: Leaders, written: int
) -> None:
    """D20: it knows the last of them only, and refuses those before as out of order."""

    def restart(batch: Batch) -> Hangup:
        for each in range(written):
            sequence = batch.sequence + each
            leaders.write(batch._replace(sequence=sequence, values=[b"%d" % each]))
        leaders.restart()
        return Hangup()

    async with leaders.producer(ONE_EACH) as producer:
        await producer.send("t", b"first")
        leaders.answers = [restart]
        deliveries = [producer.send_nowait("t", b"%d" % each) for each in range(8)]
        offsets = [(await each).offset for each in deliveries]

    assert [b"first", *(b"%d" % each for each in range(8))] == leaders.values()
    # Where those are that it does not know, nobody can tell any more.
    unknown = max(0, written - 1)
    assert [*[-1] * unknown, *range(unknown + 1, 9)] == offsets
    assert {0} == {epoch for epoch, _ in leaders.numbers()}


async def test_who_hears_that_batches_were_there_may_send_at_once(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    """Several are found to be there at the same time, and none of them is sent again then."""

    def restart(batch: Batch) -> Hangup:
        for each in range(3):
            sequence = batch.sequence + each
            leaders.write(batch._replace(sequence=sequence, values=[b"%d" % each]))
        leaders.restart()
        return Hangup()

    def send_another(_: Acknowledgement) -> None:
        if others:
            deliveries.append(producer.send_nowait("t", others.pop()))

    others: list[bytes] = []
    settings = attrs.evolve(ONE_EACH, retry=ExponentialBackoff(0.0, 0.0))
    async with leaders.producer(settings, on_acknowledgement=send_another) as producer:
        await producer.send("t", b"first")
        leaders.answers = [restart]
        deliveries = [producer.send_nowait("t", b"%d" % each) for each in range(3)]
        others = [b"4", b"3"]
        with trio.fail_after(1):
            offsets = [(await each).offset for each in deliveries]

    assert [b"first", *(b"%d" % each for each in range(5))] == leaders.values()
    assert [-1, -1, 3, 4, 5] == offsets


async def test_leader_that_has_lost_batches_gets_what_follows_in_a_new_epoch(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    """D21: what it acknowledged is gone; what it has not, comes once and in order."""

    def lose(batch: Batch) -> Hangup:
        leaders.lose(1)
        return Hangup()

    async with leaders.producer(ONE_EACH) as producer:
        for value in (b"kept", b"lost"):
            await producer.send("t", value)
        leaders.answers = [lose]
        deliveries = [producer.send_nowait("t", b"%d" % each) for each in range(8)]
        for each in deliveries:
            await each

    assert [b"kept", *(b"%d" % each for each in range(8))] == leaders.values()
    assert (1, 0) in leaders.numbers()


async def test_batch_that_expired_on_its_way_raises_the_epoch(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    """D21: nobody knows whether it was written, and what follows is taken in either case."""
    settings = attrs.evolve(
        AT_ONCE, delivery_timeout_seconds=20.0, client=with_requests(timeout_seconds=60.0)
    )
    async with leaders.producer(settings) as producer:
        await producer.send("t", b"0")
        leaders.answers = [leaders.write_and(say_nothing)]
        with pytest.raises(DeliveryTimeoutError):
            await producer.send("t", b"a")
        await trio.sleep(60)
        assert 2 == (await producer.send("t", b"b")).offset

    assert [b"0", b"a", b"b"] == leaders.values()
    assert (1, 0) == leaders.numbers()[-1]


async def test_refused_batch_leaves_no_gap_in_the_numbers(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    """D21: what follows begins a new epoch."""
    leaders.answers = [leaders.write, refusal(error_codes.INVALID_RECORD)]
    async with leaders.producer(AT_ONCE) as producer:
        await producer.send("t", b"a")
        with pytest.raises(ApiError, match="INVALID_RECORD"):
            await producer.send("t", b"bad")
        await producer.send("t", b"b")

    assert [(0, 0), (0, 1), (1, 0)] == leaders.numbers()
    assert [b"a", b"b"] == leaders.values()


@pytest.mark.parametrize("settings", [ProducerSettings(), ProducerSettings(idempotence=False)])
async def test_batch_that_is_too_large_is_split(
    autojump_clock: MockClock, leaders: Leaders, settings: ProducerSettings
) -> None:
    """D22: numbers go on, order stays, every record has its own offset."""
    too_large = refusal(error_codes.MESSAGE_TOO_LARGE)
    settings = attrs.evolve(settings, batch_bytes=1000)
    async with leaders.producer(settings) as producer:
        await producer.send("t", b"0")
        leaders.answers = [too_large]
        values = [b"%d" % each * 100 for each in range(8)]
        deliveries = [await producer.enqueue("t", each) for each in values]
        await producer.flush()

        assert list(range(1, 9)) == [each.result().offset for each in deliveries]
        assert [b"0", *values] == leaders.values()


async def test_first_batch_that_is_split_stays_before_the_next_one(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    """D22: nothing follows it before the leader knows the producer, so nothing can overtake it."""
    settings = attrs.evolve(AT_ONCE, batch_bytes=1000)
    async with leaders.producer(settings) as producer:
        leaders.answers = [refusal(error_codes.MESSAGE_TOO_LARGE)]
        values = [b"%d" % each * 300 for each in range(5)]
        deliveries = await producer.send_batch("t", values)
        offsets = [each.result().offset for each in deliveries]

    assert values == leaders.values()
    assert list(range(5)) == offsets


async def test_too_large_batch_that_may_be_written_is_not_written_again_in_parts(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    """The leader would not recognise the parts as what it has: it knows whole batches only."""
    too_large = refusal(error_codes.MESSAGE_TOO_LARGE)
    together = attrs.evolve(AT_ONCE, linger_seconds=0.01)
    async with leaders.producer(together) as producer:
        await producer.send("t", b"0")
        leaders.answers = [leaders.write_and(hang_up), too_large]
        with pytest.raises(SendBatchError) as raised:
            await producer.send_batch("t", [b"1", b"2"])
        after = await producer.send("t", b"3")

    assert [RecordTooLargeError] * 2 == [type(error) for _, error in raised.value.failures]
    assert raised.value.may_have_been_written
    assert [b"0", b"1", b"2", b"3"] == leaders.values()
    assert 3 == after.offset


@pytest.mark.parametrize("code", [error_codes.MESSAGE_TOO_LARGE, error_codes.INVALID_RECORD])
async def test_refused_batch_that_a_later_one_proves_written_has_succeeded(
    code: int, autojump_clock: MockClock, leaders: Leaders
) -> None:
    """A leader that has the second batch has the first, whose response came as an error."""
    late = leaders.write_and(refusal(error_codes.REQUEST_TIMED_OUT))
    two_each = attrs.evolve(AT_ONCE, batch_bytes=200)
    async with leaders.producer(two_each) as producer:
        await producer.send("t", b"0")
        leaders.answers = [late, leaders.write, refusal(code)]
        deliveries = await producer.send_batch("t", [bytes([each]) * 50 for each in range(4)])
        offsets = [each.result().offset for each in deliveries]

    assert 5 == len(leaders.values())
    assert [-1, -1, 3, 4] == offsets


REFUSED_BEFORE_APPEND = (
    error_codes.CORRUPT_MESSAGE,
    error_codes.LEADER_NOT_AVAILABLE,
    error_codes.NOT_ENOUGH_REPLICAS,
    error_codes.NOT_LEADER_OR_FOLLOWER,
    error_codes.UNKNOWN_TOPIC_OR_PARTITION,
)


@pytest.mark.parametrize("code", REFUSED_BEFORE_APPEND, ids=error_codes.name_of)
async def test_first_batch_that_was_refused_is_not_taken_for_written(
    autojump_clock: MockClock, leaders: Leaders, code: int
) -> None:
    """D20: a leader that knows nothing of a producer accepts any sequence (KIP-98).

    With a second batch on its way, that one would be the first in the log. When its response is
    lost too, the retries look as after a restart of the leader: the first one is out of order, the
    second one a duplicate.
    """
    async with leaders.producer(ONE_EACH) as producer:
        leaders.answers = [refusal(code), leaders.write_and(hang_up)]
        deliveries = [await producer.enqueue("t", b"%d" % each) for each in range(3)]
        offsets = [(await each).offset for each in deliveries]

    assert [b"0", b"1", b"2"] == leaders.values()
    assert [0, 1, 2] == offsets


@pytest.mark.parametrize("code", REFUSED_BEFORE_APPEND, ids=error_codes.name_of)
async def test_first_batches_of_a_new_epoch_are_sent_one_by_one(
    autojump_clock: MockClock, leaders: Leaders, code: int
) -> None:
    """D21: to begin a new epoch is to begin anew, also for what the leader knows of it."""
    async with leaders.producer(ONE_EACH) as producer:
        await producer.send("t", b"first")
        leaders.answers = [refusal(error_codes.INVALID_RECORD)]
        with pytest.raises(ApiError, match="INVALID_RECORD"):
            await producer.send("t", b"bad")
        leaders.answers = [refusal(code), leaders.write_and(hang_up)]
        deliveries = [producer.send_nowait("t", b"%d" % each) for each in range(3)]
        offsets = [(await each).offset for each in deliveries]

    assert [b"first", b"0", b"1", b"2"] == leaders.values()
    assert [1, 2, 3] == offsets
    assert (1, 0) in leaders.numbers()


@pytest.mark.parametrize("code", REFUSED_BEFORE_APPEND, ids=error_codes.name_of)
async def test_leader_that_may_have_forgotten_the_producer_gets_one_batch_first(
    autojump_clock: MockClock, leaders: Leaders, code: int
) -> None:
    """D20: producer.id.expiration.ms may be over after a pause."""
    async with leaders.producer(ONE_EACH) as producer:
        await producer.send("t", b"first")
        await trio.sleep(KNOWN_SECONDS)
        leaders.forget_producers()
        # What other producers append meanwhile leaves room for what this one believes to be there.
        leaders.values().extend([b"other"] * 10)
        leaders.answers = [refusal(code), leaders.write_and(hang_up)]
        deliveries = [producer.send_nowait("t", b"%d" % each) for each in range(3)]
        for each in deliveries:
            await each

    assert [b"0", b"1", b"2"] == leaders.values()[11:]


async def test_forgetful_leader_is_found_out_by_offsets(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    """D20: between what it acknowledged before and after there is no room for the refused batch."""

    def forget(batch: Batch) -> Any:
        leaders.forget_producers()
        return refused(batch, error_codes.REQUEST_TIMED_OUT)

    async with leaders.producer(ONE_EACH) as producer:
        await producer.send("t", b"first")
        leaders.answers = [forget, leaders.write_and(hang_up)]
        deliveries = [producer.send_nowait("t", b"%d" % each) for each in range(3)]
        offsets = [(await each).offset for each in deliveries]

    written = leaders.values()
    assert 4 == len(written)
    assert {b"first", b"0", b"1", b"2"} == set(written)
    assert [b"0", b"1", b"2"] == [written[each] for each in offsets]


async def test_batch_that_timed_out_before_the_leader_restarted_is_not_written_twice(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    """D20: its successor is acknowledged, and the restarted leader knows only that one."""

    def restart(batch: Batch) -> Any:
        leaders.restart()
        return leaders.write(batch)

    async with leaders.producer(ONE_EACH) as producer:
        await producer.send("t", b"first")
        timed_out = refusal(error_codes.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
        leaders.answers = [leaders.write_and(timed_out), leaders.write, restart]
        deliveries = [producer.send_nowait("t", b"%d" % each) for each in range(2)]
        offsets = [(await each).offset for each in deliveries]
        await producer.send("t", b"last")

    assert [b"first", b"0", b"1", b"last"] == leaders.values()
    assert [-1, 2] == offsets


async def test_batch_that_may_have_been_written_leaves_the_numbers_of_the_next_as_they_are(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    """D20: the loop was held up, and its last request and its time are over at once."""
    settings = attrs.evolve(
        ONE_EACH, delivery_timeout_seconds=12.0, client=with_requests(timeout_seconds=10.0)
    )
    node = leaders.nodes[1]
    async with leaders.producer(settings) as producer:
        await producer.send("t", b"first")
        take = node.replies["Produce"]
        node.replies["Produce"] = lambda seen: take(seen) and None
        late = producer.send_nowait("t", b"late")
        await trio.sleep(1)
        following = producer.send_nowait("t", b"following")
        await trio.sleep(1)
        node.replies["Produce"] = take
        autojump_clock.jump(10.5)

        assert 2 == (await following).offset
        with pytest.raises(TrionetError):
            await late
        assert 3 == (await producer.send("t", b"last")).offset

    assert [b"first", b"late", b"following", b"last"] == leaders.values()
