from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.numbered_batches import NOW, T0, T1, Batch, idempotence, may_drain, sent, written
from trionet.client.producer.transactions._sequences import (
    EPOCH_MAX,
    KNOWN_SECONDS,
    NONE,
    SEQUENCE_MAX,
    PartitionSequences,
    ProducerIdentity,
    after,
    is_newer,
)
from trionet.client.producer.transactions._transaction_manager import TransactionManager
from trionet.errors import TrionetError
from trionet.protocol import error_codes

OUT_OF_ORDER = error_codes.OUT_OF_ORDER_SEQUENCE_NUMBER
UNKNOWN_PRODUCER = error_codes.UNKNOWN_PRODUCER_ID


def lost(state: TransactionManager, *batches: Batch) -> None:
    """Their responses are, with the connection."""
    for batch in batches:
        assert state.can_retry(batch, error_codes.NETWORK_EXCEPTION, NONE)
        batch.may_be_written = True


def refused(state: TransactionManager, *batches: Batch) -> None:
    for batch in batches:
        assert not state.is_written(batch, OUT_OF_ORDER)
        assert state.can_retry(batch, OUT_OF_ORDER, NONE)
        state.settle()


def test_nothing_is_sent_before_there_is_an_id() -> None:
    state = TransactionManager()
    batch = Batch()

    assert (True, False) == (state.needs_id, may_drain(state, batch))
    state.take_id(7, 3)
    assert (False, True) == (state.needs_id, may_drain(state, batch))


def test_records_of_a_partition_are_numbered_on_and_on() -> None:
    state = idempotence(T0)
    batches = [Batch(record_count=3), Batch(record_count=2), Batch(T1), Batch()]
    sent(state, *batches)

    assert [(0, 1), (0, 4), (0, 0), (0, 6)] == [each.number for each in batches]
    assert {7} == {each.producer_id for each in batches}


def test_after_the_largest_sequence_comes_zero() -> None:
    sequences = PartitionSequences(ProducerIdentity(7, 0))
    sequences.next = SEQUENCE_MAX - 1
    first, second = Batch(record_count=3), Batch()
    sequences.assign(first)
    sequences.assign(second)
    sequences.acked(first, 0, NOW)

    assert SEQUENCE_MAX - 1 == first.base_sequence
    assert 1 == second.base_sequence
    assert not sequences.is_all_acked()
    sequences.acked(second, 3, NOW)
    assert sequences.is_all_acked()


def test_first_batch_of_a_producer_goes_alone() -> None:
    """D20: a leader that does not know the producer would accept the second one without it."""
    state = idempotence()
    first, second, third = Batch(), Batch(), Batch()
    sent(state, first)

    assert not may_drain(state, second)
    written(state, first, 0)
    sent(state, second, third)


def test_first_batch_of_an_epoch_goes_alone() -> None:
    """D20, D21: so does what is sent again in a new epoch, batch by batch."""
    state = idempotence(T0)
    bad, first, second = Batch(), Batch(), Batch()
    sent(state, bad)
    state.failed(bad)
    state.settle()
    sent(state, first)

    assert (1, 0) == first.number
    assert not may_drain(state, second)
    written(state, first, 1)
    sent(state, second)


@pytest.mark.parametrize(
    ("leader_epoch", "now", "may_pipeline"),
    [(0, NOW + KNOWN_SECONDS - 0.1, True), (0, NOW + KNOWN_SECONDS, False), (1, NOW, False)],
)
def test_leader_that_may_not_know_the_producer_gets_one_batch_first(
    leader_epoch: int, now: float, may_pipeline: bool
) -> None:
    """D20: after a pause it may have forgotten it, and a new leader may never have known it."""
    state = idempotence(T0)
    first = Batch()
    assert may_drain(state, first, leader_epoch=leader_epoch, now=now)
    state.assign(first)

    assert may_pipeline == may_drain(state, Batch(), leader_epoch=leader_epoch, now=now)


@given(st.integers(0, SEQUENCE_MAX), st.integers(1, 1_000_000))
def test_newer_is_newer_across_the_end_of_the_circle(sequence: int, records: int) -> None:
    later = after(sequence, records)

    assert is_newer(later, sequence)
    assert not is_newer(sequence, later)
    assert not is_newer(sequence, sequence)


def test_only_the_first_in_flight_is_sent_again() -> None:
    """D20: retries cannot overtake each other, and keep their numbers."""
    state = idempotence(T0)
    first, second = Batch(), Batch()
    sent(state, first, second)

    assert state.can_retry(first, error_codes.NOT_LEADER_OR_FOLLOWER, NONE)
    refused(state, second)
    assert not may_drain(state, second)
    sent(state, first)
    written(state, first, 1)
    sent(state, second)
    assert [(0, 1), (0, 2)] == [first.number, second.number]


def test_leader_that_lost_what_it_acknowledged_gets_the_rest_in_a_new_epoch() -> None:
    """D20, D21: nothing that was in flight is there, so that it begins at 0."""
    state = idempotence(T0)
    first, second = Batch(record_count=2), Batch()
    sent(state, first, second)

    refused(state, first)
    assert (0, 1) == first.number
    refused(state, second)
    assert [(1, 0), (1, 2)] == [first.number, second.number]
    sent(state, first)
    assert not may_drain(state, second)
    written(state, first, 1)
    sent(state, second)


def test_failure_does_not_renumber_what_the_leader_may_have() -> None:
    """D20, D21: a new epoch begins when those in flight are decided."""
    state = idempotence(T0)
    stored, bad, following = Batch(), Batch(), Batch()
    sent(state, stored, bad, following)
    lost(state, stored)
    state.failed(bad)
    refused(state, following)

    assert [(0, 1), (0, 3)] == [stored.number, following.number]
    assert not may_drain(state, Batch())
    sent(state, stored)
    assert [] == written(state, stored, 1)
    sent(state, following)
    refused(state, following)
    assert (1, 0) == following.number


def test_failure_of_the_last_one_that_could_decide_begins_a_new_epoch() -> None:
    """D20, D21: what is left in flight is out of order, and nothing that is new may pass it."""
    state = idempotence(T0)
    bad, following, last = Batch(), Batch(), Batch()
    sent(state, bad, following, last)
    state.failed(bad)
    refused(state, following)
    assert (0, 2) == following.number
    state.failed(last)
    state.settle()

    assert (1, 0) == following.number
    sent(state, following)


def test_leader_that_knows_the_last_one_only_has_those_before_it() -> None:
    """D20: so does a broker that was stopped and started; nothing is written twice."""
    state = idempotence(T0)
    first, second, third = Batch(), Batch(record_count=2), Batch()
    sent(state, first, second, third)
    lost(state, first, second, third)

    for batch, following in ((first, second), (second, third)):
        sent(state, batch)
        refused(state, batch)
        assert state.passes_over(batch)
        assert not may_drain(state, batch)
        assert not may_drain(state, Batch())
        assert not state.passes_over(following)
    sent(state, third)

    assert [first, second] == written(state, third, 4)
    new = Batch()
    sent(state, new)
    assert (0, 5) == new.number


def test_batches_of_other_producers_do_not_hide_that() -> None:
    """D20: there is room for what was refused, and for what others appended."""
    state = idempotence(T0)
    first, second = Batch(), Batch()
    sent(state, first, second)
    lost(state, first, second)
    sent(state, first)
    refused(state, first)
    sent(state, second)

    assert [first] == written(state, second, 20)


@pytest.mark.parametrize("base_offset", [1, NONE])
def test_batch_without_room_in_the_log_is_not_taken_for_written(base_offset: int) -> None:
    """D20: the leader had forgotten the producer, and accepted the second without the first.

    Where the leader does not know the offset nothing is proven either.
    """
    state = idempotence(T0)
    first, second, third = Batch(), Batch(), Batch()
    sent(state, first, second, third)
    lost(state, first, second, third)
    sent(state, first)
    refused(state, first)
    sent(state, second)
    assert [] == written(state, second, base_offset)

    # The third one may be there, and is asked for before it gets a new number.
    state.settle()
    assert (0, 3) == third.number
    sent(state, third)
    assert [] == written(state, third, base_offset + 1)
    state.settle()
    assert (1, 0) == first.number


def test_batch_that_was_refused_before_it_was_appended_is_not_taken_for_written() -> None:
    """D20: whatever room there is."""
    state = idempotence(T0)
    first, second = Batch(), Batch()
    sent(state, first, second)
    assert state.can_retry(first, error_codes.NOT_ENOUGH_REPLICAS, NONE)
    lost(state, second)
    sent(state, first)
    refused(state, first)
    sent(state, second)

    assert [] == written(state, second, 20)
    state.settle()
    assert (1, 0) == first.number


def test_batch_whose_successor_is_acknowledged_is_written_when_it_is_out_of_order() -> None:
    """D20: it timed out after the append, and the leader was restarted before it was retried."""
    state = idempotence(T0)
    first, second = Batch(), Batch()
    sent(state, first, second)
    assert state.can_retry(first, error_codes.NOT_ENOUGH_REPLICAS_AFTER_APPEND, NONE)
    first.may_be_written = True
    assert [] == written(state, second, 2)

    assert not state.is_written(first, error_codes.NOT_LEADER_OR_FOLLOWER)
    assert state.is_written(first, OUT_OF_ORDER)
    assert [] == written(state, first, NONE)
    new = Batch()
    sent(state, new)
    assert (0, 3) == new.number


def test_no_new_batch_follows_one_that_the_leader_may_have() -> None:
    """D20: after five others the leader would not know any more that it has it (KIP-98)."""
    state = idempotence(T0)
    doubtful = Batch()
    sent(state, doubtful)
    lost(state, doubtful)

    assert not may_drain(state, Batch())
    sent(state, doubtful)
    assert not may_drain(state, Batch())
    written(state, doubtful, 1)
    assert may_drain(state, Batch())


def test_leader_that_knows_none_of_them_gets_them_in_a_new_epoch() -> None:
    """D20, D21: it has lost them, and takes them in their order."""
    state = idempotence(T0)
    first, second = Batch(), Batch(record_count=2)
    sent(state, first, second)
    lost(state, first, second)
    for batch in (first, second):
        sent(state, batch)
        refused(state, batch)

    assert [(1, 0), (1, 1)] == [first.number, second.number]
    assert not may_drain(state, second)
    sent(state, first)
    assert [] == written(state, first, 1)
    sent(state, second)


def test_refused_batch_that_expires_leaves_the_others_to_report() -> None:
    """D20, D21: what was given up before one that was written leaves no gap."""
    state = idempotence(T0)
    first, second = Batch(), Batch()
    sent(state, first, second)
    lost(state, first, second)
    sent(state, first)
    refused(state, first)
    state.failed(first)
    state.settle()

    sent(state, second)
    assert [] == written(state, second, 2)
    state.settle()
    new = Batch()
    sent(state, new)
    assert (0, 3) == new.number


def test_other_partitions_finish_in_the_old_epoch() -> None:
    """D21: only the partition with the gap is numbered anew at once (KIP-360)."""
    state = idempotence()
    bad, other = Batch(), Batch(T1)
    sent(state, bad, other)
    state.failed(bad)
    state.settle()
    waiting = Batch(T1)

    assert not may_drain(state, waiting)
    written(state, other, 0)
    sent(state, waiting, Batch())
    assert [(0, 0), (1, 0)] == [other.number, waiting.number]


def test_given_up_batch_whose_successor_was_written_leaves_no_gap() -> None:
    """D21: the leader took what follows, so it has what was given up."""
    state = idempotence(T0)
    expired, second = Batch(), Batch()
    sent(state, expired, second)
    expired.may_be_written = True
    state.failed(expired)
    waiting = Batch()
    state.settle()

    assert not may_drain(state, waiting)
    written(state, second, 2)
    state.settle()
    sent(state, waiting)
    assert (0, 3) == waiting.number


def test_given_up_batch_without_a_successor_begins_a_new_epoch() -> None:
    """D21: it may be there or not, and only a new epoch is taken in either case."""
    state = idempotence()
    expired = Batch(record_count=4)
    sent(state, expired)
    expired.may_be_written = True
    state.failed(expired)
    state.settle()
    following = Batch()
    sent(state, following)

    assert (1, 0) == following.number


def test_batch_that_is_refused_after_a_lost_response_does_not_renumber_those_that_follow() -> None:
    """D20: they may be there as well, and their numbers show it."""
    state = idempotence(T0)
    first, second = Batch(), Batch()
    sent(state, first, second)
    lost(state, first, second)
    state.failed(first)
    state.settle()

    assert (0, 2) == second.number
    sent(state, second)


def test_successor_of_a_given_up_batch_that_is_out_of_order_begins_a_new_epoch() -> None:
    """D21: what was given up was never written."""
    state = idempotence(T0)
    expired, second, third = Batch(), Batch(), Batch()
    sent(state, expired, second, third)
    expired.may_be_written = True
    state.failed(expired)

    refused(state, second)
    assert (0, 2) == second.number
    refused(state, third)
    assert [(1, 0), (1, 1)] == [second.number, third.number]
    sent(state, second)
    written(state, second, 1)
    sent(state, third)
    written(state, third, 2)
    following = Batch()
    sent(state, following)
    assert (1, 2) == following.number


def test_late_response_to_a_batch_of_an_old_epoch_changes_nothing() -> None:
    """D11, D21."""
    state = idempotence()
    expired = Batch(record_count=4)
    sent(state, expired)
    expired.may_be_written = True
    state.failed(expired)
    state.settle()
    following = Batch()
    sent(state, following)
    written(state, expired, 0)

    assert not may_drain(state, Batch())
    refused(state, following)
    assert (2, 0) == following.number


def test_leader_that_forgot_the_producer_gets_a_new_epoch() -> None:
    """D21: where the log starts tells that it really has forgotten."""
    state = idempotence()
    batch = Batch()
    sent(state, batch)

    assert state.can_retry(batch, UNKNOWN_PRODUCER, NONE)
    state.settle()
    assert (0, 0) == batch.number
    assert state.can_retry(batch, UNKNOWN_PRODUCER, 10)
    state.settle()
    assert (1, 0) == batch.number


def test_pieces_of_a_split_batch_share_its_numbers() -> None:
    """D22: what follows keeps its numbers, and waits for the pieces."""
    state = idempotence(T0)
    big, following = Batch(record_count=5), Batch()
    sent(state, big, following)
    pieces = [Batch(record_count=2), Batch(record_count=3)]
    pieces[0].set_producer_state(7, 0, 1)
    pieces[1].set_producer_state(7, 0, 3)
    state.split(big, pieces)

    assert not may_drain(state, pieces[1])
    sent(state, pieces[0])
    written(state, pieces[0], 1)
    assert not may_drain(state, following)
    sent(state, pieces[1])
    written(state, pieces[1], 3)
    sent(state, following)
    assert (0, 6) == following.number


def test_worn_out_epoch_needs_a_new_id() -> None:
    state = TransactionManager()
    state.take_id(7, EPOCH_MAX)
    known, bad, waiting = Batch(), Batch(), Batch()
    sent(state, known)
    written(state, known, 0)
    sent(state, bad, waiting)
    state.failed(bad)
    refused(state, waiting)

    assert state.needs_id
    assert not may_drain(state, waiting)
    state.take_id(8, 0)
    assert (8, 0, 0) == (waiting.producer_id, *waiting.number)
    sent(state, waiting)


def test_end_of_a_producer_is_reported_once() -> None:
    state = idempotence()
    first, second = TrionetError("a"), TrionetError("b")
    state.fail(first)
    state.fail(second)

    assert first is state.error
