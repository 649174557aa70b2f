from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from support.logs import batch
from trionet.broker.log.state._producer_state import (
    BATCHES_KEPT,
    ProducerEntry,
    StoredBatch,
    accept,
    remove_expired,
    replayed,
    sequence_after,
    sequence_before,
)
from trionet.errors import ApiError
from trionet.protocol.error_codes import INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER
from trionet.protocol.records._batch import BatchHeader, read_header
from trionet.protocol.records._records import encode_batch

SEQUENCE_MAX = 2**31 - 1


def header(epoch: int = 0, sequence: int = 0, count: int = 1, producer_id: int = 7) -> BatchHeader:
    return read_header(batch(count, producer=(producer_id, epoch, sequence)))


class Partition:
    """The entries, and an offset for each record accepted."""

    def __init__(self) -> None:
        self.entries: dict[int, ProducerEntry] = {}
        self.end_offset = 0

    def send(self, sent: BatchHeader) -> tuple[str, int]:
        pending: dict[int, ProducerEntry] = {}
        duplicate = accept(self.entries, pending, sent, self.end_offset, sent.max_timestamp)
        if duplicate is not None:
            assert pending == {}
            return "duplicate", duplicate.first_offset
        self.entries.update(pending)
        base_offset, self.end_offset = self.end_offset, self.end_offset + sent.count
        return "stored", base_offset

    def refused(self, sent: BatchHeader) -> int:
        before = dict(self.entries)
        with pytest.raises(ApiError) as raised:
            self.send(sent)
        assert before == self.entries
        return raised.value.error_code


@pytest.fixture
def partition() -> Partition:
    return Partition()


def test_consecutive_sequences_are_stored(partition: Partition) -> None:
    assert ("stored", 0) == partition.send(header(sequence=0, count=3))
    assert ("stored", 3) == partition.send(header(sequence=3, count=2))
    assert ("stored", 5) == partition.send(header(sequence=5))


def test_first_batch_of_an_unknown_producer_may_have_any_sequence(partition: Partition) -> None:
    assert ("stored", 0) == partition.send(header(epoch=4, sequence=1234))
    assert ("stored", 1) == partition.send(header(epoch=4, sequence=1235))


@pytest.mark.parametrize("sequence", [0, 1, 4, 6, 100])
def test_gap_or_unknown_repetition_is_out_of_order(partition: Partition, sequence: int) -> None:
    partition.send(header(sequence=0, count=5))

    assert OUT_OF_ORDER_SEQUENCE_NUMBER == partition.refused(header(sequence=sequence))
    assert ("stored", 5) == partition.send(header(sequence=5))


def test_each_of_the_last_five_batches_is_recognised(partition: Partition) -> None:
    for number in range(7):
        partition.send(header(sequence=2 * number, count=2))

    for number in range(2, 7):
        assert ("duplicate", 2 * number) == partition.send(header(sequence=2 * number, count=2))
    for number in range(2):
        sent = header(sequence=2 * number, count=2)
        assert OUT_OF_ORDER_SEQUENCE_NUMBER == partition.refused(sent)


def test_repetition_must_have_the_same_length(partition: Partition) -> None:
    partition.send(header(sequence=0, count=3))

    assert OUT_OF_ORDER_SEQUENCE_NUMBER == partition.refused(header(sequence=0, count=2))


def test_older_epoch_is_refused(partition: Partition) -> None:
    partition.send(header(epoch=3))

    assert INVALID_PRODUCER_EPOCH == partition.refused(header(epoch=2, sequence=1))
    assert INVALID_PRODUCER_EPOCH == partition.refused(header(epoch=2))


def test_new_epoch_starts_at_zero(partition: Partition) -> None:
    partition.send(header(epoch=3, sequence=0))

    assert OUT_OF_ORDER_SEQUENCE_NUMBER == partition.refused(header(epoch=4, sequence=1))
    assert ("stored", 1) == partition.send(header(epoch=4, sequence=0))
    assert ("duplicate", 1) == partition.send(header(epoch=4, sequence=0))
    assert INVALID_PRODUCER_EPOCH == partition.refused(header(epoch=3, sequence=1))


def test_sequences_wrap_from_the_largest_int32_to_zero(partition: Partition) -> None:
    partition.send(header(sequence=SEQUENCE_MAX - 1, count=2))

    assert ("stored", 2) == partition.send(header(sequence=0))
    assert ("duplicate", 0) == partition.send(header(sequence=SEQUENCE_MAX - 1, count=2))


def test_batch_may_wrap_inside(partition: Partition) -> None:
    partition.send(header(sequence=SEQUENCE_MAX - 1, count=4))

    assert 1 == partition.entries[7].last_sequence
    assert ("duplicate", 0) == partition.send(header(sequence=SEQUENCE_MAX - 1, count=4))
    assert ("stored", 4) == partition.send(header(sequence=2))


@given(st.integers(0, SEQUENCE_MAX), st.integers(0, SEQUENCE_MAX))
def test_going_on_and_back_by_the_same_count_returns(sequence: int, count: int) -> None:
    assert sequence == sequence_before(sequence_after(sequence, count), count)
    assert 0 <= sequence_after(sequence, count) <= SEQUENCE_MAX


def test_several_batches_of_one_call_follow_each_other() -> None:
    pending: dict[int, ProducerEntry] = {}

    assert accept({}, pending, header(sequence=0, count=2), 0, 1) is None
    assert accept({}, pending, header(sequence=2, count=1), 2, 1) is None
    assert StoredBatch(1, 1, 1, 1) == accept({}, pending, header(sequence=0, count=2), 3, 1)
    with pytest.raises(ApiError):
        accept({}, pending, header(sequence=4), 3, 1)


def test_producers_expire_when_idle_but_not_in_a_transaction() -> None:
    old = ProducerEntry(0, (), 1000)
    open_transaction = ProducerEntry(0, (), 1000, transaction_first_offset=5)
    entries = {1: old, 2: open_transaction, 3: ProducerEntry(0, (), 1001)}

    remove_expired(entries, 1499, 500)
    assert {1, 2, 3} == set(entries)
    remove_expired(entries, 1500, 500)
    assert {2, 3} == set(entries)


def test_replay_believes_the_log(partition: Partition) -> None:
    entry = replayed(None, header(epoch=3, sequence=10, count=2)._replace(base_offset=100))
    entry = replayed(entry, header(epoch=3, sequence=50)._replace(base_offset=200))

    assert (3, (11, 50)) == (entry.epoch, tuple(each.last_sequence for each in entry.batches))
    assert [100, 200] == [each.first_offset for each in entry.batches]


def test_replay_follows_transactions_to_their_markers() -> None:
    def sent(control: bool, epoch: int, offset: int) -> BatchHeader:
        data = encode_batch(
            [(5, b"k", b"v", [])],
            base_offset=offset,
            producer_id=7,
            producer_epoch=epoch,
            base_sequence=-1 if control else offset,
            transactional=True,
            control=control,
        )
        return read_header(data)

    began = replayed(None, sent(False, 0, 0))
    went_on = replayed(began, sent(False, 0, 1))
    ended = replayed(went_on, sent(True, 0, 2))
    fenced = replayed(went_on, sent(True, 1, 2))

    assert (0, 0) == (began.transaction_first_offset, went_on.transaction_first_offset)
    assert (-1, 2) == (ended.transaction_first_offset, len(ended.batches))
    assert (-1, 1, ()) == (fenced.transaction_first_offset, fenced.epoch, fenced.batches)
    assert ProducerEntry(1, (), 5) == replayed(None, sent(True, 1, 2))


class ProducerStateMachine(RuleBasedStateMachine):
    """Whatever is sent: each record once, in order, within its epoch."""

    def __init__(self) -> None:
        super().__init__()
        self.partition = Partition()
        self.epoch = 0
        self.accepted: list[tuple[int, int, int, int]] = []

    @rule(count=st.integers(1, 5))
    def send_next(self, count: int) -> None:
        expected = 0
        if self.accepted and self.accepted[-1][0] == self.epoch:
            expected = sum(self.accepted[-1][1:3])
        outcome = self.partition.send(header(self.epoch, expected, count))

        assert ("stored", self.partition.end_offset - count) == outcome
        self.accepted.append((self.epoch, expected, count, outcome[1]))

    @rule(back=st.integers(1, 8))
    def repeat(self, back: int) -> None:
        mine = [sent for sent in self.accepted if sent[0] == self.epoch]
        if back > len(mine):
            return
        epoch, sequence, count, offset = mine[-back]
        sent = header(epoch, sequence, count)

        if back <= BATCHES_KEPT:
            assert ("duplicate", offset) == self.partition.send(sent)
        else:
            assert OUT_OF_ORDER_SEQUENCE_NUMBER == self.partition.refused(sent)

    @rule(jump=st.integers(1, 100), count=st.integers(1, 5))
    def leave_a_gap(self, jump: int, count: int) -> None:
        if self.accepted and self.accepted[-1][0] == self.epoch:
            sequence = sum(self.accepted[-1][1:3]) + jump
            sent = header(self.epoch, sequence, count)

            assert OUT_OF_ORDER_SEQUENCE_NUMBER == self.partition.refused(sent)

    @rule()
    def begin_an_epoch(self) -> None:
        self.epoch += 1

    @rule(sequence=st.integers(0, 20))
    def send_with_an_old_epoch(self, sequence: int) -> None:
        if self.accepted and self.accepted[-1][0] > 0:
            sent = header(self.accepted[-1][0] - 1, sequence)

            assert INVALID_PRODUCER_EPOCH == self.partition.refused(sent)

    @invariant()
    def knows_at_most_the_last_five_batches(self) -> None:
        entry = self.partition.entries.get(7)
        if entry is not None:
            current = [sent for sent in self.accepted if sent[0] == entry.epoch]
            kept = [(each.first_sequence, each.first_offset) for each in entry.batches]

            assert [(sent[1], sent[3]) for sent in current[-BATCHES_KEPT:]] == kept


TestProducerStateMachine = ProducerStateMachine.TestCase
