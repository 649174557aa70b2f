"""Idempotent producers: what is accepted, and what a restart finds of them."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from support.logs import batch
from trionet.broker.log import Directory, LastShutdown, Log, LogConfig
from trionet.broker.log.segments._aborted_transactions import AbortedTransaction
from trionet.broker.log.state._open_transactions import OpenTransactions
from trionet.broker.log.state._producer_state import (
    BATCHES_KEPT,
    ProducerEntry,
    StoredBatch,
    accept,
    decode_snapshot,
    encode_snapshot,
    remove_expired,
    replay,
    sequence_after,
    sequence_before,
    snapshots_among,
)
from trionet.errors import ApiError, WireFormatError
from trionet.protocol.error_codes import INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER
from trionet.protocol.records._batch import TRANSACTIONAL, BatchHeader, read_header
from trionet.protocol.records._crc32c import crc32c
from trionet.protocol.records._records import EndTransactionMarker, encode_marker

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


class Replayed:
    """The state after batches and markers that were read from a log, at successive offsets."""

    def __init__(self) -> None:
        self.producers: dict[int, ProducerEntry] = {}
        self.transactions = OpenTransactions()
        self.aborted: list[AbortedTransaction] = []
        self.end_offset = 0

    def read(
        self, header: BatchHeader, marker: EndTransactionMarker | None = None
    ) -> ProducerEntry:
        placed = header._replace(base_offset=self.end_offset)
        self.end_offset = placed.last_offset + 1
        aborted = replay(self.producers, self.transactions, placed, marker)
        self.aborted += [] if aborted is None else [aborted]
        return self.producers[header.producer_id]

    def read_marker(
        self, epoch: int, *, producer_id: int = 7, is_commit: bool = False, is_empty: bool = False
    ) -> ProducerEntry:
        marker = EndTransactionMarker(is_commit, 4)
        data = encode_marker(marker, timestamp=5, producer_id=producer_id, producer_epoch=epoch)
        return self.read(read_header(data), None if is_empty else marker)


def in_transaction(epoch: int, sequence: int, producer_id: int = 7) -> BatchHeader:
    sent = header(epoch, sequence, producer_id=producer_id)
    return sent._replace(attributes=TRANSACTIONAL)


def test_replay_believes_the_log() -> None:
    log = Replayed()
    log.read(header(epoch=3, sequence=10, count=2))
    entry = log.read(header(epoch=3, sequence=50))

    assert (3, (11, 50)) == (entry.epoch, tuple(each.last_sequence for each in entry.batches))
    assert [0, 2] == [each.first_offset for each in entry.batches]


def test_replay_follows_transactions_to_their_markers() -> None:
    log = Replayed()
    began = log.read(in_transaction(0, 0))
    went_on = log.read(in_transaction(0, 1))
    is_open = dict(log.transactions.first_offsets)
    ended = log.read_marker(0)

    assert (0, 0) == (began.transaction_first_offset, went_on.transaction_first_offset)
    assert {7: 0} == is_open
    assert (-1, 2, 4) == (
        ended.transaction_first_offset,
        len(ended.batches),
        ended.coordinator_epoch,
    )
    assert {} == log.transactions.first_offsets
    assert [AbortedTransaction(7, 0, 2, 3)] == log.aborted


def test_replayed_marker_of_a_newer_epoch_drops_the_batches() -> None:
    log = Replayed()
    log.read(in_transaction(0, 0))
    fenced = log.read_marker(1)

    assert ProducerEntry(1, (), 5, 4) == fenced


def test_replayed_commit_aborts_nothing() -> None:
    log = Replayed()
    log.read(in_transaction(0, 0))
    log.read_marker(1, is_commit=True)

    assert [] == log.aborted
    assert {} == log.transactions.first_offsets


def test_replayed_marker_alone_makes_an_entry() -> None:
    log = Replayed()

    assert ProducerEntry(1, (), 5, 4) == log.read_marker(1)
    assert [] == log.aborted


def test_replayed_control_batch_without_its_record_ends_nothing() -> None:
    """Compaction leaves it empty when the whole transaction is gone."""
    log = Replayed()
    log.read(in_transaction(0, 0))
    entry = log.read_marker(1, is_empty=True)

    assert (0, 0) == (entry.epoch, entry.transaction_first_offset)


def test_aborted_transaction_is_stable_up_to_the_oldest_other_one() -> None:
    log = Replayed()
    log.read(in_transaction(0, 0, producer_id=7))
    log.read(in_transaction(0, 0, producer_id=8))
    log.read(in_transaction(0, 0, producer_id=9))
    log.read_marker(0, producer_id=8)
    log.read_marker(0, producer_id=7)
    log.read_marker(0, producer_id=9)

    expected = [
        AbortedTransaction(8, 1, 3, 0),
        AbortedTransaction(7, 0, 4, 2),
        AbortedTransaction(9, 2, 5, 6),
    ]
    assert expected == log.aborted


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


INT64 = st.integers(0, 2**63 - 1)
INT32 = st.integers(0, 2**31 - 1)
BATCHES = st.builds(StoredBatch, INT32, INT64, INT32, INT64)


@st.composite
def entries(draw: st.DrawFn) -> ProducerEntry:
    batches = tuple(draw(st.lists(BATCHES, max_size=BATCHES_KEPT)))
    return ProducerEntry(
        draw(st.integers(0, 2**15 - 1)),
        batches,
        batches[-1].timestamp if batches else draw(INT64),
        draw(st.integers(-1, 2**31 - 1)),
        draw(st.integers(-1, 2**63 - 1)),
    )


def test_file_is_kafkas_version_1() -> None:
    entry = ProducerEntry(3, (StoredBatch(9, 99, 4, 1234),), 1234, 6, 95)
    body = struct.pack(">i", 1) + struct.pack(">qhiqiqiq", 7, 3, 9, 99, 4, 1234, 6, 95)

    assert struct.pack(">hI", 1, crc32c(body)) + body == encode_snapshot({7: entry})
    assert 2 + 4 + 4 + 46 == len(encode_snapshot({7: entry}))


def test_batches_of_a_producer_are_entries_that_kafka_takes_the_last_one_of() -> None:
    """The earlier ones tell nothing of transactions, and expire no later."""
    batches = StoredBatch(4, 90, 0, 1300), StoredBatch(9, 99, 4, 1234)
    body = struct.pack(">i", 2)
    body += struct.pack(">qhiqiqiq", 7, 3, 4, 90, 0, 1234, 6, -1)
    body += struct.pack(">qhiqiqiq", 7, 3, 9, 99, 4, 1234, 6, 95)

    snapshot = encode_snapshot({7: ProducerEntry(3, batches, 1234, 6, 95)})

    assert struct.pack(">hI", 1, crc32c(body)) + body == snapshot


@given(st.dictionaries(INT64, entries(), max_size=6))
def test_batches_of_each_producer_survive(known: dict[int, ProducerEntry]) -> None:
    expected = {
        producer_id: entry._replace(
            batches=tuple(
                each._replace(timestamp=min(each.timestamp, entry.timestamp))
                for each in entry.batches
            )
        )
        for producer_id, entry in known.items()
    }

    assert expected == decode_snapshot(encode_snapshot(known))


def test_no_more_batches_than_a_producer_has_in_flight_are_read() -> None:
    batches = tuple(StoredBatch(each, each, 0, 1) for each in range(BATCHES_KEPT + 2))

    known = decode_snapshot(encode_snapshot({7: ProducerEntry(3, batches, 1)}))

    assert batches[2:] == known[7].batches


@given(st.binary(max_size=80))
def test_any_bytes_are_a_snapshot_or_refused(data: bytes) -> None:
    try:
        known = decode_snapshot(data)
    except WireFormatError:
        return

    assert data == encode_snapshot(known)


def test_snapshot_changed_at_any_bit_is_refused() -> None:
    data = encode_snapshot({7: ProducerEntry(3, (StoredBatch(9, 99, 4, 1234),), 1234)})

    for bit in range(8 * len(data)):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(WireFormatError):
            decode_snapshot(bytes(changed))


def test_snapshot_cut_anywhere_is_refused() -> None:
    data = encode_snapshot({7: ProducerEntry(3, (), 1), 8: ProducerEntry(3, (), 1)})

    for size in range(len(data)):
        with pytest.raises(WireFormatError):
            decode_snapshot(data[:size])


def test_count_that_does_not_fit_is_refused() -> None:
    body = struct.pack(">i", 2) + bytes(46)

    with pytest.raises(WireFormatError, match="do not fit"):
        decode_snapshot(struct.pack(">hI", 1, crc32c(body)) + body)


NOW = 5_000
SIZE = len(batch(producer=(7, 0, 0)))
CONFIG = LogConfig(segment_bytes=2 * SIZE, index_interval_bytes=1)


def sent(count: int) -> list[bytes]:
    return [batch(timestamp=NOW, producer=(7, 0, number)) for number in range(count)]


def written(directory: Directory, count: int) -> Log:
    log = Log(directory, CONFIG, now_ms=NOW)
    for data in sent(count):
        log.append(data, NOW)
    return log


def reopen(directory: Directory, *, was_clean: bool = False, recovery_point: int = 0) -> Log:
    last_shutdown = LastShutdown(was_clean=was_clean, recovery_point=recovery_point)
    return Log(directory, CONFIG, now_ms=NOW, last_shutdown=last_shutdown)


def duplicates(log: Log, count: int) -> list[int]:
    """Which of the batches the log knows to have."""
    known = []
    for number, data in enumerate(sent(count)):
        try:
            if not log.append(data, NOW).size:
                known.append(number)
        except ApiError:
            continue
    return known


def test_killed_log_knows_the_last_five_batches(directory: Directory) -> None:
    written(directory, 9)
    log = reopen(directory)

    assert [4, 5, 6, 7, 8] == duplicates(log, 9)
    assert 9 == log.end_offset
    assert 9 == log.append(batch(producer=(7, 0, 9)), NOW).first_offset


async def test_clean_stop_keeps_the_last_five_batches_of_each_producer(
    directory: Directory,
) -> None:
    """What was in flight when the broker was stopped is sent again to the next one."""
    log = written(directory, 9)
    log.append(batch(4, timestamp=NOW, producer=(8, 3, 100)), NOW)
    await log.close()
    log = reopen(directory, was_clean=True)

    assert [4, 5, 6, 7, 8] == duplicates(log, 9)
    again = log.append(batch(4, timestamp=NOW, producer=(8, 3, 100)), NOW)
    assert (9, 12, True) == (again.first_offset, again.last_offset, not again.size)


async def test_snapshots_lie_where_segments_start(directory: Directory) -> None:
    log = written(directory, 5)
    await log.flush()
    at_rolls = snapshots_among(directory.names())
    await log.close()

    assert ([2, 4] if directory.is_durable else []) == at_rolls
    assert [*at_rolls, 5] == snapshots_among(directory.names())
    known = decode_snapshot(directory.read("00000000000000000005.snapshot"))
    assert [(7, 4, 4)] == [
        (producer_id, entry.last_sequence, entry.batches[-1].last_offset)
        for producer_id, entry in known.items()
    ]


async def test_scan_starts_from_the_snapshot_at_its_first_segment(directory: Directory) -> None:
    log = written(directory, 6)
    await log.flush()
    await log.close()
    if not directory.is_durable:
        return
    name = "00000000000000000004.snapshot"
    known = decode_snapshot(directory.read(name))
    [entry] = known.values()
    directory.replace(name, encode_snapshot({7: entry._replace(batches=entry.batches[-1:])}))
    log = reopen(directory, recovery_point=5)

    # Batch 3 from the snapshot at offset 4, batches 4 and 5 from the scan.
    assert [3, 4, 5] == duplicates(log, 6)


async def test_missing_snapshot_is_made_up_for_by_the_headers(directory: Directory) -> None:
    log = written(directory, 6)
    await log.close()
    for offset in snapshots_among(directory.names()):
        directory.remove(f"{offset:020d}.snapshot")
    log = reopen(directory, recovery_point=5)

    assert [1, 2, 3, 4, 5] == duplicates(log, 6)
    assert 4 in snapshots_among(directory.names())


@pytest.mark.parametrize("was_clean", [True, False])
async def test_damaged_snapshot_is_passed_over(
    directory: Directory, was_clean: bool, caplog: pytest.LogCaptureFixture
) -> None:
    log = written(directory, 6)
    await log.flush()
    await log.close()
    for offset in snapshots_among(directory.names())[-2:]:
        directory.write(f"{offset:020d}.snapshot", 3, b"\xff\xff\xff")
    log = reopen(directory, was_clean=was_clean, recovery_point=5)

    assert 5 in duplicates(log, 6)
    assert 6 == log.end_offset
    # In memory there is no snapshot where the scan starts: none was ever needed.
    assert (was_clean or directory.is_durable) == ("ignoring the snapshot" in caplog.text)


async def test_folder_without_snapshots_needs_none_after_a_clean_stop(
    directory: Directory,
) -> None:
    log = written(directory, 3)
    await log.close()
    for offset in snapshots_among(directory.names()):
        directory.remove(f"{offset:020d}.snapshot")
    log = reopen(directory, was_clean=True)

    assert [] == duplicates(log, 1)
    assert 4 == log.end_offset


async def test_only_useful_snapshots_are_kept(directory: Directory) -> None:
    log = written(directory, 3)
    await log.close()
    for count in (1, 2, 4):
        log = reopen(directory, was_clean=True)
        for number in range(count):
            data = batch(timestamp=NOW, producer=(7, 0, log.end_offset))
            assert number < count
            log.append(data, NOW)
        await log.close()
    log = reopen(directory, was_clean=True)
    directory.write("00000000000000009999.snapshot", 0, b"of an offset that never was")
    log = reopen(directory, was_clean=True)

    bases = {segment.base_offset for segment in log._segments.all}
    assert set(snapshots_among(directory.names())) <= bases | {log.end_offset}
    assert log.end_offset in snapshots_among(directory.names())


def test_batches_that_were_cut_are_forgotten(directory: Directory) -> None:
    written(directory, 5)
    directory.truncate("00000000000000000004.log", SIZE - 1)
    log = reopen(directory)

    assert 4 == log.end_offset
    assert log.append(sent(5)[4], NOW).size


async def test_producers_that_expired_meanwhile_are_forgotten(directory: Directory) -> None:
    config = LogConfig(producer_id_expiration_ms=100)
    log = Log(directory, config, now_ms=NOW)
    log.append(sent(1)[0], NOW)
    await log.close()
    last_shutdown = LastShutdown(was_clean=True)
    before = Log(directory, config, now_ms=NOW + 99, last_shutdown=last_shutdown).append(
        sent(1)[0], NOW
    )
    after = Log(directory, config, now_ms=NOW + 100, last_shutdown=last_shutdown).append(
        sent(1)[0], NOW
    )

    assert (True, False) == (not before.size, not after.size)
