from __future__ import annotations

import attrs
from hypothesis import given
from hypothesis import strategies as st

from trionet.client.producer.idempotence import Idempotence
from trionet.client.producer.sequences import (
    EPOCH_MAX,
    NONE,
    SEQUENCE_MAX,
    PartitionSequences,
    ProducerIdentity,
    after,
    is_newer,
)
from trionet.client.topic_partition import TopicPartition
from trionet.errors import TrionetError
from trionet.protocol import error_codes

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
OUT_OF_ORDER = error_codes.OUT_OF_ORDER_SEQUENCE_NUMBER
UNKNOWN_PRODUCER = error_codes.UNKNOWN_PRODUCER_ID


@attrs.define(eq=False)
class Batch:
    """As much of a batch as numbers need."""

    topic_partition: TopicPartition = T0
    record_count: int = 1
    producer_id: int = NONE
    producer_epoch: int = NONE
    base_sequence: int = NONE
    attempts: int = 0
    is_split: bool = False

    def set_producer_state(self, producer_id: int, epoch: int, base_sequence: int) -> None:
        self.producer_id = producer_id
        self.producer_epoch = epoch
        self.base_sequence = base_sequence

    @property
    def number(self) -> tuple[int, int]:
        return self.producer_epoch, self.base_sequence


def idempotence() -> Idempotence:
    made = Idempotence()
    made.take_id(7, 0)
    return made


def sent(state: Idempotence, *batches: Batch) -> None:
    for batch in batches:
        assert state.may_drain(batch)
        state.assign(batch)


def test_nothing_is_sent_before_there_is_an_id() -> None:
    state = Idempotence()
    batch = Batch()

    assert (True, False) == (state.needs_id, state.may_drain(batch))
    state.take_id(7, 3)
    assert (False, True) == (state.needs_id, state.may_drain(batch))


def test_records_of_a_partition_are_numbered_on_and_on() -> None:
    state = idempotence()
    batches = [Batch(record_count=3), Batch(record_count=2), Batch(T1), Batch()]
    sent(state, *batches)

    assert [(0, 0), (0, 3), (0, 0), (0, 5)] == [each.number for each in batches]
    assert {7} == {each.producer_id for each in batches}


def test_after_the_largest_sequence_comes_zero() -> None:
    sequences = PartitionSequences(ProducerIdentity(7, 0))
    sequences.next = SEQUENCE_MAX - 1
    first, second = Batch(record_count=3), Batch()
    sequences.assign(first)
    sequences.assign(second)
    sequences.acked(first)

    assert SEQUENCE_MAX - 1 == first.base_sequence
    assert 1 == second.base_sequence
    assert sequences.is_next(1)


@given(st.integers(0, SEQUENCE_MAX), st.integers(1, 1_000_000))
def test_newer_is_newer_across_the_end_of_the_circle(sequence: int, records: int) -> None:
    later = after(sequence, records)

    assert is_newer(later, sequence)
    assert not is_newer(sequence, later)
    assert not is_newer(sequence, sequence)


def test_only_the_first_in_flight_is_sent_again() -> None:
    """D20: retries cannot overtake each other, and keep their numbers."""
    state = idempotence()
    first, second = Batch(), Batch()
    sent(state, first, second)

    assert state.can_retry(first, error_codes.NOT_LEADER_OR_FOLLOWER, NONE)
    assert state.can_retry(second, OUT_OF_ORDER, NONE)
    state.settle()
    assert not state.may_drain(second)
    sent(state, first)
    state.completed(first)
    sent(state, second)
    assert [(0, 0), (0, 1)] == [first.number, second.number]


def test_out_of_order_of_the_one_that_is_next_is_a_gap() -> None:
    """D20, D21: the leader lost what it had acknowledged: a new epoch begins at 0."""
    state = idempotence()
    lost, first, second = Batch(), Batch(record_count=2), Batch()
    sent(state, lost, first, second)
    state.completed(lost)

    assert state.can_retry(first, OUT_OF_ORDER, NONE)
    assert (0, 1) == first.number
    state.settle()
    assert [(1, 0), (1, 2)] == [first.number, second.number]
    assert state.can_retry(second, OUT_OF_ORDER, NONE)  # the answer to its old number
    state.settle()
    assert (1, 2) == second.number
    sent(state, first)
    state.completed(first)
    sent(state, second)


def lost(state: Idempotence, *batches: Batch) -> None:
    """Their answers are, with the connection."""
    for batch in batches:
        assert state.can_retry(batch, error_codes.NETWORK_EXCEPTION, NONE)
        batch.attempts += 1


def test_leader_that_knows_the_last_one_only_has_those_before_it() -> None:
    """D20: so does a broker that was stopped and started; nothing is written twice."""
    state = idempotence()
    first, second, third = Batch(), Batch(record_count=2), Batch()
    sent(state, first, second, third)
    lost(state, first, second, third)

    for refused, following in ((first, second), (second, third)):
        sent(state, refused)
        assert state.can_retry(refused, OUT_OF_ORDER, NONE)
        state.settle()
        assert state.passes_over(refused)
        assert not state.may_drain(refused)
        assert not state.may_drain(Batch())
        assert not state.passes_over(following)
    sent(state, third)

    assert [first, second] == state.completed(third)
    new = Batch()
    sent(state, new)
    assert (0, 4) == new.number


def test_leader_that_knows_none_of_them_gets_them_in_a_new_epoch() -> None:
    """D20, D21: it has lost them, and takes them in their order."""
    state = idempotence()
    first, second = Batch(), Batch(record_count=2)
    sent(state, first, second)
    lost(state, first, second)
    for batch in (first, second):
        sent(state, batch)
        assert state.can_retry(batch, OUT_OF_ORDER, NONE)
        state.settle()

    assert [(1, 0), (1, 1)] == [first.number, second.number]
    assert not state.may_drain(second)
    sent(state, first)
    assert [] == list(state.completed(first))
    sent(state, second)


def test_refused_batch_that_expires_leaves_the_others_to_tell() -> None:
    """D20, D21: what was given up before one that was written leaves no gap."""
    state = idempotence()
    first, second = Batch(), Batch()
    sent(state, first, second)
    lost(state, first, second)
    sent(state, first)
    assert state.can_retry(first, OUT_OF_ORDER, NONE)
    state.failed(first, error_codes.REQUEST_TIMED_OUT, is_known_unwritten=False)
    state.settle()

    sent(state, second)
    assert [] == list(state.completed(second))
    state.settle()
    new = Batch()
    sent(state, new)
    assert (0, 2) == new.number


def test_other_partitions_finish_in_the_old_epoch() -> None:
    """D21: only the partition with the gap is numbered anew at once (KIP-360)."""
    state = idempotence()
    refused, other = Batch(), Batch(T1)
    sent(state, refused, other)
    state.failed(refused, error_codes.INVALID_RECORD, is_known_unwritten=True)
    state.settle()
    waiting = Batch(T1)

    assert not state.may_drain(waiting)
    state.completed(other)
    sent(state, waiting, Batch())
    assert [(0, 0), (1, 0)] == [other.number, waiting.number]


def test_given_up_batch_whose_successor_was_written_leaves_no_gap() -> None:
    """D21: the leader took what follows, so it has what was given up."""
    state = idempotence()
    expired, second = Batch(), Batch()
    sent(state, expired, second)
    state.failed(expired, error_codes.REQUEST_TIMED_OUT, is_known_unwritten=False)
    waiting = Batch()
    state.settle()

    assert not state.may_drain(waiting)
    state.completed(second)
    state.settle()
    sent(state, waiting)
    assert (0, 2) == waiting.number


def test_given_up_batch_that_nobody_followed_begins_a_new_epoch() -> None:
    """D21: it may be there or not, and only a new epoch is taken in either case."""
    state = idempotence()
    expired = Batch(record_count=4)
    sent(state, expired)
    state.failed(expired, error_codes.REQUEST_TIMED_OUT, is_known_unwritten=False)
    state.settle()
    following = Batch()
    sent(state, following)

    assert (1, 0) == following.number


def test_successor_of_a_given_up_batch_that_is_out_of_order_begins_a_new_epoch() -> None:
    """D21: what was given up was never written."""
    state = idempotence()
    expired, second, third = Batch(), Batch(), Batch()
    sent(state, expired, second, third)
    state.failed(expired, error_codes.REQUEST_TIMED_OUT, is_known_unwritten=False)

    assert state.can_retry(third, OUT_OF_ORDER, NONE)
    state.settle()
    assert (0, 2) == third.number
    assert state.can_retry(second, OUT_OF_ORDER, NONE)
    state.settle()
    assert [(1, 0), (1, 1)] == [second.number, third.number]
    state.completed(second)
    state.completed(third)
    following = Batch()
    sent(state, following)
    assert (1, 2) == following.number


def test_late_answer_to_a_batch_of_an_old_epoch_changes_nothing() -> None:
    """D11, D21."""
    state = idempotence()
    expired = Batch(record_count=4)
    sent(state, expired)
    state.failed(expired, error_codes.REQUEST_TIMED_OUT, is_known_unwritten=False)
    state.settle()
    following = Batch()
    sent(state, following)
    state.completed(expired)

    assert state.can_retry(following, OUT_OF_ORDER, NONE)
    state.settle()
    assert (2, 0) == following.number


def test_leader_that_forgot_the_producer_is_told_of_it_anew() -> None:
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
    state = idempotence()
    big, following = Batch(record_count=5), Batch()
    sent(state, big, following)
    pieces = [Batch(record_count=2), Batch(record_count=3)]
    pieces[0].set_producer_state(7, 0, 0)
    pieces[1].set_producer_state(7, 0, 2)
    state.split(big, pieces)

    assert not state.may_drain(pieces[1])
    sent(state, pieces[0])
    state.completed(pieces[0])
    assert not state.may_drain(following)
    sent(state, pieces[1])
    state.completed(pieces[1])
    sent(state, following)
    assert (0, 5) == following.number


def test_pieces_that_were_overtaken_begin_a_new_epoch() -> None:
    """A leader that knows nothing of a producer takes any number first."""
    state = idempotence()
    large, behind = Batch(record_count=2), Batch()
    sent(state, large, behind)
    pieces = [Batch(base_sequence=number, is_split=True) for number in (0, 1)]
    for piece in pieces:
        piece.set_producer_state(7, 0, piece.base_sequence)
    state.split(large, pieces)
    state.completed(behind)
    sent(state, pieces[0])

    assert state.can_retry(pieces[0], OUT_OF_ORDER, 0)
    state.settle()

    assert [(1, 0), (1, 1)] == [each.number for each in pieces]
    following = Batch()
    for each in (*pieces, following):
        sent(state, each)
        state.completed(each)
    assert following.number == (1, 2)


def test_worn_out_epoch_needs_a_new_id() -> None:
    state = Idempotence()
    state.take_id(7, EPOCH_MAX)
    refused, waiting = Batch(), Batch()
    sent(state, refused, waiting)
    state.failed(refused, error_codes.INVALID_RECORD, is_known_unwritten=True)
    state.settle()

    assert state.needs_id
    assert not state.may_drain(waiting)
    state.take_id(8, 0)
    assert (8, 0, 0) == (waiting.producer_id, *waiting.number)
    sent(state, waiting)


def test_end_of_a_producer_is_told_once() -> None:
    state = idempotence()
    first, second = TrionetError("a"), TrionetError("b")
    state.fail(first)
    state.fail(second)

    assert first is state.error


@given(st.data())
def test_leader_takes_every_batch_once_and_in_order(data: st.DataObject) -> None:
    """D20: whatever answers are lost and however late they come."""
    state = idempotence()
    leader: list[int] = []
    expected: dict[int, int] = {0: 0}
    queue = [Batch(record_count=data.draw(st.integers(1, 3))) for _ in range(6)]
    numbers = {id(batch): number for number, batch in enumerate(queue)}
    attempts = 0
    while queue:
        state.settle()
        wave: list[Batch] = []
        while queue and len(wave) < 5 and state.may_drain(queue[0]):
            state.assign(queue[0])
            wave.append(queue.pop(0))
        assert wave
        again = []
        for batch in wave:
            attempts += 1
            epoch, sequence = batch.number
            arrives = attempts > 40 or data.draw(st.booleans())
            is_taken = False
            if arrives and expected.get(epoch, 0) == sequence:
                leader.append(numbers[id(batch)])
                expected[epoch] = sequence + batch.record_count
                is_taken = True
            is_duplicate = arrives and sequence < expected.get(epoch, 0)
            is_told = attempts > 40 or data.draw(st.booleans())
            if (is_taken or is_duplicate) and is_told:
                state.completed(batch)
            elif arrives and is_told:
                assert state.can_retry(batch, OUT_OF_ORDER, NONE)
                again.append(batch)
            else:
                assert state.can_retry(batch, error_codes.NETWORK_EXCEPTION, NONE)
                again.append(batch)
        queue = again + queue

    assert list(range(6)) == leader
