"""Transactions in a log: markers, the last stable offset, aborted transactions, and restarts."""

from __future__ import annotations

import struct

import pytest

from support.log_agreement import check_agreement, entries_of
from support.logs import batch, bytes_of, headers
from support.transactions import NOW, abort, commit, committed, end, send
from trionet.broker.log import (
    Directory,
    FolderDirectory,
    LastShutdown,
    Log,
    LogConfig,
    MemoryDirectory,
)
from trionet.broker.log.files._checkpoint_files import Extent
from trionet.errors import ApiError
from trionet.protocol.error_codes import (
    INVALID_PRODUCER_EPOCH,
    INVALID_RECORD,
    INVALID_TXN_STATE,
    KAFKA_STORAGE_ERROR,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    TRANSACTION_COORDINATOR_FENCED,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    name_of,
)
from trionet.protocol.records._records import EndTransactionMarker, decode_batch, read_marker

EPOCH_MAX = 2**15 - 1
SYNCED = LogConfig(flush_messages=1)
MARKER_BYTES = 78


@pytest.fixture
def log(directory: Directory) -> Log:
    return Log(directory, now_ms=NOW)


def refused(code: int, call: object) -> str:
    """The message of an error with this code."""
    assert callable(call)
    with pytest.raises(ApiError) as raised:
        call()
    assert name_of(code) == name_of(raised.value.error_code)
    return str(raised.value)


def reopened(log: Log, *, was_clean: bool = True, config: LogConfig | None = None) -> Log:
    """The same files after a restart; after an unclean stop, as the recovery point says."""
    last_shutdown = LastShutdown(
        was_clean=was_clean,
        recovery_point=log.stored_recovery_point if log.directory.is_durable else 0,
        start_offset=log.start_offset,
        extent=log.extent if log.directory.is_durable else None,
    )
    return Log(log.directory, config or log.config, now_ms=NOW, last_shutdown=last_shutdown)


# The last stable offset


def test_last_stable_offset_waits_for_the_marker(log: Log) -> None:
    log.append(batch(2), NOW)
    send(log, 7, count=3)
    log.append(batch(), NOW)

    assert (6, 2) == (log.high_watermark, log.last_stable_offset)
    assert {7: 2} == log.open_transactions
    commit(log, 7)
    assert 7 == log.high_watermark == log.last_stable_offset
    assert {} == log.open_transactions


def test_last_stable_offset_waits_for_the_oldest_transaction(log: Log) -> None:
    send(log, 7)
    send(log, 8)
    send(log, 9)

    offsets = [log.last_stable_offset]
    for producer_id in (8, 7, 9):
        commit(log, producer_id)
        offsets.append(log.last_stable_offset)
    assert [0, 0, 2, 6] == offsets


async def test_marker_that_is_not_on_disk_ends_nothing_for_readers(folder: FolderDirectory) -> None:
    """With flush.messages=1, a power failure takes what is not on disk."""
    log = Log(folder, SYNCED, now_ms=NOW)
    send(log, 7)
    await log.flush()
    abort(log, 7)
    send(log, 8)
    commit(log, 8)

    assert (1, 0) == (log.high_watermark, log.last_stable_offset)
    await log.flush(2)
    assert 4 == log.high_watermark == log.last_stable_offset


async def test_last_stable_offset_is_at_most_the_high_watermark(folder: FolderDirectory) -> None:
    log = Log(folder, SYNCED, now_ms=NOW)
    log.append(batch(3), NOW)
    await log.flush()
    send(log, 7)
    send(log, 8)

    assert 3 == log.high_watermark == log.last_stable_offset
    await log.flush()
    assert (5, 3) == (log.high_watermark, log.last_stable_offset)


def test_plain_batches_between_are_read_once_they_are_below(log: Log) -> None:
    log.append(batch(value=b"a"), NOW)
    send(log, 7, b"b")
    log.append(batch(value=b"c"), NOW)

    assert [(0, b"a")] == committed(log)
    abort(log, 7)
    assert [(0, b"a"), (2, b"c")] == committed(log)


# Bytes that become stable


def test_bytes_of_each_append_are_stable_without_transactions(log: Log) -> None:
    sizes = [log.append(batch(count), NOW).size for count in (1, 2)]

    assert sum(sizes) == log.take_stable_bytes()
    assert 0 == log.take_stable_bytes()
    assert log.append(batch(), NOW).size == log.take_stable_bytes()


def test_marker_frees_the_bytes_after_the_begin_of_its_transaction(log: Log) -> None:
    log.append(batch(), NOW)
    log.take_stable_bytes()
    sizes = [send(log, 7, count=3).size, log.append(batch(5), NOW).size]

    assert 0 == log.take_stable_bytes()
    assert MARKER_BYTES == commit(log, 7).size
    assert sum(sizes) + MARKER_BYTES == log.take_stable_bytes()


def test_bytes_before_the_begin_are_stable_at_once(log: Log) -> None:
    plain = batch(3)
    transactional = batch(producer=(7, 0, 0), transactional=True)
    log.append(plain + transactional, NOW, 2)

    assert len(plain) == log.take_stable_bytes()


def test_rolled_segments_count(directory: Directory) -> None:
    log = Log(directory, LogConfig(segment_bytes=300), now_ms=NOW)
    log.append(batch(), NOW)
    log.take_stable_bytes()
    sizes = [send(log, 7).size for _ in range(10)]
    assert 0 == log.take_stable_bytes()
    commit(log, 7)

    assert sum(sizes) + MARKER_BYTES == log.take_stable_bytes()
    assert len(log._segments.all) > 2


async def test_bytes_are_stable_once_they_are_on_disk(folder: FolderDirectory) -> None:
    log = Log(folder, SYNCED, now_ms=NOW)
    size = send(log, 7).size
    commit(log, 7)
    log.append(batch(), NOW)

    assert 0 == log.take_stable_bytes()
    await log.flush()
    assert size + MARKER_BYTES + len(batch()) == log.take_stable_bytes()


async def test_bytes_of_a_transaction_from_before_the_restart_count(directory: Directory) -> None:
    log = Log(directory, LogConfig(segment_bytes=300), now_ms=NOW)
    log.append(batch(), NOW)
    sizes = [send(log, 7).size for _ in range(6)]
    await log.close()
    again = reopened(log)

    assert 0 == again.take_stable_bytes()
    commit(again, 7)
    assert sum(sizes) + MARKER_BYTES == again.take_stable_bytes()


# Markers


@pytest.mark.parametrize("is_commit", [True, False])
async def test_marker_is_a_control_batch_as_kafka_writes_it(log: Log, is_commit: bool) -> None:
    await log.begin_epoch(5)
    send(log, 7)
    appended = end(log, 7, is_commit=is_commit, coordinator_epoch=3, now_ms=NOW + 1)
    *_, header = headers(log)
    data = bytes_of(log.read(1, 1000))

    assert (1, 1, -1, 0, MARKER_BYTES) == tuple(appended)
    assert MARKER_BYTES == len(data) == header.size
    assert (1, 0, 5, 0x30) == (
        header.base_offset,
        header.last_offset_delta,
        header.leader_epoch,
        header.attributes,
    )
    assert (7, 1, -1, 1) == header[9:]
    assert (NOW + 1, NOW + 1) == (header.base_timestamp, header.max_timestamp)
    [(offset, timestamp, key, value, _)] = decode_batch(data)
    assert (1, NOW + 1) == (offset, timestamp)
    assert EndTransactionMarker(is_commit, 3) == read_marker(key, value)


def test_topic_that_stamps_records_does_not_stamp_markers(directory: Directory) -> None:
    log = Log(directory, LogConfig(message_timestamp_type="LogAppendTime"), now_ms=NOW)
    send(log, 7)
    commit(log, 7)

    assert [1, 0] == [each.timestamp_type for each in headers(log)]


def test_marker_without_an_open_transaction_changes_the_producer_alone(log: Log) -> None:
    end(log, 7, is_commit=False, epoch=4, coordinator_epoch=2)

    entry = log.producers[7]
    assert (4, (), 2, -1) == (
        entry.epoch,
        entry.batches,
        entry.coordinator_epoch,
        entry.transaction_first_offset,
    )
    assert 1 == log.end_offset == log.last_stable_offset
    assert [] == log.aborted_transactions(0, 1)


def test_marker_of_the_same_epoch_keeps_the_sequences(log: Log) -> None:
    """Before version 2 of transactions, a producer goes on as if nothing had been."""
    send(log, 7, version=1)
    commit(log, 7, version=1)

    assert "expected 1" in refused(
        OUT_OF_ORDER_SEQUENCE_NUMBER, lambda: send(log, 7, version=1, sequence=2)
    )
    assert 2 == send(log, 7, version=1, sequence=1).first_offset


def test_marker_that_raises_the_epoch_starts_the_sequences_anew(log: Log) -> None:
    """KIP-890: what is late of the old transaction can no longer begin another."""
    send(log, 7)
    commit(log, 7)

    refused(INVALID_PRODUCER_EPOCH, lambda: send(log, 7, epoch=0, sequence=1))
    refused(OUT_OF_ORDER_SEQUENCE_NUMBER, lambda: send(log, 7, epoch=1, sequence=1))
    refused(OUT_OF_ORDER_SEQUENCE_NUMBER, lambda: send(log, 7, epoch=2, sequence=1))
    assert 2 == send(log, 7, epoch=1, sequence=0).first_offset


@pytest.mark.parametrize(
    ("version", "is_open", "epoch", "marker", "code"),
    [
        (1, True, 3, 2, INVALID_PRODUCER_EPOCH),
        (1, True, 3, 3, None),
        (1, True, 3, 4, None),
        (1, False, 3, 2, INVALID_PRODUCER_EPOCH),
        (1, False, 3, 3, None),
        (0, True, 3, 3, None),
        (2, True, 3, 2, INVALID_PRODUCER_EPOCH),
        (2, True, 3, 3, INVALID_PRODUCER_EPOCH),
        (2, True, 3, 4, None),
        (2, False, 3, 2, INVALID_PRODUCER_EPOCH),
        (2, False, 3, 3, None),
        (2, True, EPOCH_MAX, EPOCH_MAX, None),
        (2, True, EPOCH_MAX, EPOCH_MAX - 1, INVALID_PRODUCER_EPOCH),
    ],
)
def test_epoch_of_a_marker_follows_the_version(
    log: Log, version: int, is_open: bool, epoch: int, marker: int, code: int | None
) -> None:
    """In version 2 it is newer than that of the records, unless the marker is repeated."""
    send(log, 7, epoch=epoch)
    if not is_open:
        end(log, 7, is_commit=True, version=1, epoch=epoch)
    before = log.end_offset

    def write() -> None:
        end(log, 7, is_commit=True, version=version, epoch=marker)

    if code is not None:
        refused(code, write)
        assert (before, epoch) == (log.end_offset, log.producers[7].epoch)
        assert is_open == (7 in log.open_transactions)
    else:
        write()
        assert (before + 1, marker) == (log.end_offset, log.producers[7].epoch)
        assert {} == log.open_transactions


def test_marker_of_an_older_coordinator_is_fenced(log: Log) -> None:
    """Also where no transaction is open; another producer has its own coordinator."""
    send(log, 7)
    end(log, 7, is_commit=True, coordinator_epoch=4)

    text = refused(
        TRANSACTION_COORDINATOR_FENCED,
        lambda: end(log, 7, is_commit=True, coordinator_epoch=3),
    )
    assert "coordinator epoch 3" in text
    end(log, 7, is_commit=True, coordinator_epoch=4)
    end(log, 8, is_commit=True, coordinator_epoch=3)
    assert 4 == log.coordinator_epoch


def test_closed_log_takes_no_marker(log: Log) -> None:
    send(log, 7)
    log.reject_appends("it is closed")

    assert "it is closed" in refused(KAFKA_STORAGE_ERROR, lambda: commit(log, 7))


def test_last_offset_is_not_for_a_marker(directory: Directory) -> None:
    last_shutdown = LastShutdown(was_clean=True, start_offset=2**63 - 2)
    log = Log(directory, now_ms=NOW, last_shutdown=last_shutdown)
    commit(log, 7)

    assert "no offset is left" in refused(KAFKA_STORAGE_ERROR, lambda: commit(log, 8))


def test_empty_segment_takes_a_marker_of_any_size(directory: Directory) -> None:
    log = Log(directory, LogConfig(segment_bytes=50), now_ms=NOW)
    commit(log, 7)
    commit(log, 8)

    assert [0, 1] == [each.base_offset for each in log._segments.all]
    check_agreement(log)


# Batches


def test_transactional_batch_needs_a_transactional_id(log: Log) -> None:
    records = batch(producer=(7, 0, 0), transactional=True)

    text = refused(TRANSACTIONAL_ID_AUTHORIZATION_FAILED, lambda: log.append(records, NOW))
    assert "must name the transactional.id" in text
    assert 0 == log.end_offset


def test_transactional_batch_needs_a_producer_id(log: Log) -> None:
    refused(INVALID_RECORD, lambda: log.append(batch(transactional=True), NOW, 1))


def test_control_batch_is_for_the_broker_alone(log: Log) -> None:
    send(log, 7)
    commit(log, 7)
    marker = bytes_of(log.read(1, 1000))

    refused(INVALID_RECORD, lambda: log.append(marker, NOW, 2))


@pytest.mark.parametrize("version", [-1, 0, 2])
def test_batch_of_another_kind_does_not_fit_into_a_transaction(log: Log, version: int) -> None:
    send(log, 7, version=1)
    plain = batch(producer=(7, 0, 1))

    assert "began at offset 0" in refused(
        INVALID_TXN_STATE, lambda: log.append(plain, NOW, version)
    )
    send(log, 7, version=1)
    commit(log, 7, version=1)
    log.append(batch(producer=(7, 0, 2)), NOW)


def test_duplicate_in_a_transaction_is_not_stored_again(log: Log) -> None:
    first = send(log, 7, sequence=0)
    commit(log, 7, version=1)
    again = send(log, 7, sequence=0)

    assert (first.first_offset, 0) == (again.first_offset, again.size)
    assert {} == log.open_transactions


@pytest.mark.parametrize(("version", "is_taken"), [(0, True), (1, True), (2, False)])
def test_unknown_producer_begins_with_sequence_0_since_version_2(
    log: Log, version: int, is_taken: bool
) -> None:
    """KIP-890: its first batch is lost or late; before, it may have expired here."""
    if is_taken:
        send(log, 7, version=version, sequence=5)
        assert {7: 0} == log.open_transactions
    else:
        refused(OUT_OF_ORDER_SEQUENCE_NUMBER, lambda: send(log, 7, version=version, sequence=5))
    log.append(batch(producer=(8, 0, 5)), NOW, version)


def test_batches_of_several_producers_begin_at_their_own_offsets(log: Log) -> None:
    records = b"".join(
        batch(count, producer=(producer_id, 0, sequence), transactional=True)
        for producer_id, sequence, count in [(7, 0, 2), (8, 0, 1), (7, 2, 1), (9, 0, 1)]
    )
    log.append(records, NOW, 2)

    assert {7: 0, 8: 2, 9: 4} == log.open_transactions


def test_rejected_append_begins_nothing(log: Log) -> None:
    good = batch(producer=(7, 0, 0), transactional=True)
    late = batch(producer=(7, 0, 9), transactional=True)
    refused(OUT_OF_ORDER_SEQUENCE_NUMBER, lambda: log.append(good + late, NOW, 2))

    assert {} == log.open_transactions
    assert {} == log.producers


def test_open_transaction_does_not_expire(log: Log) -> None:
    send(log, 7)
    log.append(batch(producer=(8, 0, 0)), NOW)
    log.expire_producers(NOW + log.config.producer_id_expiration_ms + 1)

    assert {7} == set(log.producers)


# Aborted transactions


def test_aborted_transactions_of_a_range_reach_as_far_as_their_markers(log: Log) -> None:
    send(log, 7)  # 0
    send(log, 8)  # 1
    abort(log, 7)  # 2
    log.append(batch(), NOW)  # 3
    abort(log, 8)  # 4
    send(log, 7)  # 5
    commit(log, 7)  # 6
    send(log, 9)  # 7
    abort(log, 9)  # 8

    every = [(7, 0), (8, 1), (9, 7)]
    assert every == log.aborted_transactions(0, 9)
    assert every[:2] == log.aborted_transactions(0, 5)
    assert every[:1] == log.aborted_transactions(0, 1)
    assert every[1:2] == log.aborted_transactions(3, 6)
    assert every[2:] == log.aborted_transactions(5, 9)


def test_aborted_transactions_are_found_in_later_segments(directory: Directory) -> None:
    log = Log(directory, LogConfig(segment_bytes=300), now_ms=NOW)
    for _ in range(10):
        send(log, 7)
    abort(log, 7)
    for _ in range(10):
        log.append(batch(), NOW)

    assert [(7, 0)] == log.aborted_transactions(0, 3)
    assert [(7, 0)] == log.aborted_transactions(9, 10)
    assert [] == log.aborted_transactions(11, 21)
    [index] = [entries for each in log._segments.all if (entries := entries_of(each))]
    assert [(7, 0, 10, 11)] == [tuple(each) for each in index]


async def test_end_of_a_read_is_what_the_index_says(directory: Directory) -> None:
    log = Log(directory, LogConfig(segment_bytes=2000, index_interval_bytes=1), now_ms=NOW)
    size = len(batch())
    for _ in range(60):
        log.append(batch(), NOW)

    ends = [log.end_of(log.read(3, count * size)) for count in (1, 2, 5)]
    assert [4, 5, 8] == ends
    last = log.read(58, 10_000)
    assert 60 == log.end_of(last)
    first = log._segments.all[0]
    whole = log.read(0, 1_000_000)
    assert first.end_offset == log.end_of(whole)
    if directory.is_durable:
        read = log.read(0, size)
        assert 1 == log.end_of(read)
        await log.flush()
        first.release()
        assert first.end_offset == log.end_of(read)


async def test_read_of_a_segment_that_is_gone_ends_where_it_ended(directory: Directory) -> None:
    log = Log(directory, LogConfig(segment_bytes=300), now_ms=NOW)
    for _ in range(10):
        log.append(batch(), NOW)
    read = log.read(0, 100)
    end_offset = log.end_of(read)
    await log.delete_before(8)

    assert end_offset == log.end_of(read) < log.start_offset


@pytest.mark.parametrize("max_bytes", [1, 200, 1_000_000])
@pytest.mark.parametrize("segment_bytes", [300, 1_000_000])
def test_consumer_gets_what_was_committed_whatever_it_fetches_at_once(
    directory: Directory, max_bytes: int, segment_bytes: int
) -> None:
    log = Log(directory, LogConfig(segment_bytes=segment_bytes), now_ms=NOW)
    expected = []
    for number in range(30):
        producer_id = 7 + number % 3
        value = b"%d" % number
        offset = send(log, producer_id, value).first_offset
        if number % 3 == 2:
            (commit if number % 2 else abort)(log, producer_id)
        if number % 5 == 0:
            abort(log, 8)
        if producer_id == 7 or (producer_id == 9 and number % 2):
            expected.append((offset, value))
    for producer_id in (7, 8, 9):
        end(log, producer_id, is_commit=producer_id == 7)

    assert expected == committed(log, max_bytes)


# Files


async def test_index_of_aborted_transactions_has_kafkas_format(folder: FolderDirectory) -> None:
    log = Log(folder, now_ms=NOW)
    send(log, 7)
    send(log, 8)
    abort(log, 8)
    abort(log, 7)
    await log.close()

    data = folder.read("00000000000000000000.txnindex")
    assert [(0, 8, 1, 2, 0), (0, 7, 0, 3, 4)] == list(struct.iter_unpack(">hqqqq", data))


async def test_log_without_aborted_transactions_has_no_index_of_them(
    directory: Directory,
) -> None:
    log = Log(directory, now_ms=NOW)
    send(log, 7)
    commit(log, 7)
    await log.flush()
    await log.close()

    assert not any(each.endswith(".txnindex") for each in directory.names())


async def test_index_is_saved_before_the_recovery_point_moves(folder: FolderDirectory) -> None:
    log = Log(folder, LogConfig(segment_bytes=300), now_ms=NOW)
    send(log, 7)
    abort(log, 7)
    for _ in range(10):
        log.append(batch(), NOW)
    await log.flush(1)

    assert log.recovery_point > 2
    assert 34 == folder.size("00000000000000000000.txnindex")
    send(log, 7)
    abort(log, 7)
    await log.flush()
    base_offset = log._segments.active.base_offset
    assert 34 == folder.size(f"{base_offset:020d}.txnindex")
    assert 2 == log.extent.aborted_transactions


async def test_index_grows_by_what_is_new(folder: FolderDirectory) -> None:
    log = Log(folder, now_ms=NOW)
    for count in (1, 2, 3):
        send(log, 7)
        abort(log, 7)
        await log.flush()
        assert 34 * count == folder.size("00000000000000000000.txnindex")


# Restarts


async def transacted(directory: Directory, segment_bytes: int = 300) -> Log:
    """A log with several segments: aborted, committed and open transactions."""
    log = Log(directory, LogConfig(segment_bytes=segment_bytes), now_ms=NOW)
    for number in range(12):
        send(log, 7, b"7-%d" % number)
        send(log, 8, b"8-%d" % number)
        log.append(batch(value=b"plain"), NOW)
        if number % 4 == 1:
            end(log, 7, is_commit=False, coordinator_epoch=number)
        if number == 6:
            commit(log, 8)
    await log.flush(log.end_offset // 2)
    return log


@pytest.mark.parametrize("was_clean", [True, False])
@pytest.mark.parametrize("segment_bytes", [300, 1_000_000])
async def test_restart_finds_open_and_aborted_transactions(
    directory: Directory, was_clean: bool, segment_bytes: int
) -> None:
    log = await transacted(directory, segment_bytes)
    if was_clean:
        await log.close()
    again = reopened(log, was_clean=was_clean)

    check_agreement(again)
    assert log.last_stable_offset == again.last_stable_offset
    assert log.open_transactions == again.open_transactions
    assert 9 == log.coordinator_epoch == again.coordinator_epoch
    for each in range(0, log.end_offset, 3):
        found = log.aborted_transactions(each, log.end_offset)
        assert found == again.aborted_transactions(each, log.end_offset)
    undisturbed = await transacted(MemoryDirectory(), segment_bytes)
    for going_on in (again, undisturbed):
        commit(going_on, 7)
        abort(going_on, 8)
    assert again.end_offset == again.last_stable_offset
    assert committed(undisturbed) == committed(again)
    check_agreement(again)


async def test_first_offset_survives_though_its_segment_is_gone(directory: Directory) -> None:
    log = await transacted(directory)
    first_offset = log.open_transactions[8]
    await log.delete_before(first_offset + 5)
    await log.close()
    again = reopened(log)

    assert first_offset == again.open_transactions[8]
    assert again.start_offset == again.last_stable_offset == first_offset + 5


@pytest.mark.parametrize("was_clean", [True, False])
@pytest.mark.parametrize("damage", ["missing", "zeros", "short", "version", "torn"])
async def test_damaged_index_does_not_show_aborted_records(
    folder: FolderDirectory, was_clean: bool, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    """What a lost file said is read from the markers, once."""
    log = await transacted(folder)
    await log.flush()
    if was_clean:
        await log.close()
    expected = committed(log)
    last_shutdown_log = log
    name = next(each for each in folder.names() if each.endswith(".txnindex"))
    data = folder.read(name)
    if damage == "missing":
        folder.remove(name)
    elif damage == "torn":
        folder.write(name, len(data), b"\0")
    else:
        folder.replace(
            name,
            {"zeros": bytes(len(data)), "short": b"", "version": b"\0\1" + data[2:]}[damage],
        )
    again = reopened(last_shutdown_log, was_clean=was_clean)

    assert "reading the log for its aborted transactions" in caplog.text
    assert expected == committed(again)
    assert data == folder.read(name)
    check_agreement(again)
    caplog.clear()
    if was_clean:
        await again.close()
    reopened(again, was_clean=was_clean)
    assert "aborted transactions" not in caplog.text


async def test_extent_of_a_release_without_transactions_demands_nothing(
    folder: FolderDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    log = await transacted(folder)
    await log.close()
    before = log.extent
    extent = Extent(
        before.topic_id,
        before.start_offset,
        before.end_offset,
        before.base_offset,
        before.position,
        before.bytes_before,
        before.leader_epoch,
    )
    last_shutdown = LastShutdown(was_clean=True, recovery_point=log.end_offset, extent=extent)
    again = Log(folder, log.config, now_ms=NOW, last_shutdown=last_shutdown)

    assert committed(log) == committed(again)
    assert "aborted" not in caplog.text


async def test_gap_that_is_filled_ends_no_transaction(folder: FolderDirectory) -> None:
    log = Log(folder, LogConfig(segment_bytes=300), now_ms=NOW)
    for _ in range(12):
        send(log, 7)
    await log.flush()
    lost = log._segments.all[1]
    folder.remove(lost.name("log"))
    again = reopened(log, was_clean=False)

    assert {7: 0} == again.open_transactions
    assert log.end_offset == again.end_offset
    abort(again, 7)
    assert [] == committed(again)


# Deleting


async def test_records_are_deleted_from_inside_a_transaction(directory: Directory) -> None:
    """It stays open, and what is left of it waits for its marker."""
    log = Log(directory, LogConfig(segment_bytes=300), now_ms=NOW)
    for _ in range(10):
        send(log, 7)
    await log.delete_before(5)

    assert {7: 0} == log.open_transactions
    assert (5, 5, 10) == (log.start_offset, log.last_stable_offset, log.high_watermark)
    send(log, 7)
    abort(log, 7)
    assert 12 == log.last_stable_offset
    assert [(7, 0)] == log.aborted_transactions(5, 12)
    assert [] == committed(log)


async def test_deleting_everything_deletes_open_transactions_too(directory: Directory) -> None:
    log = await transacted(directory)
    await log.delete_before(log.end_offset)

    assert log.start_offset == log.end_offset == log.last_stable_offset
    assert {7, 8} == set(log.open_transactions)
    commit(log, 7)
    commit(log, 8)
    assert log.end_offset == log.last_stable_offset


async def test_retention_does_not_wait_for_transactions(directory: Directory) -> None:
    config = LogConfig(segment_bytes=300, retention_ms=10)
    log = Log(directory, config, now_ms=NOW)
    for _ in range(10):
        send(log, 7)
    due = log.retention_due(NOW + 1_000_000)

    assert due == log.end_offset
    await log.delete_before(due)
    assert {7: 0} == log.open_transactions


async def test_index_goes_with_its_segment(folder: FolderDirectory) -> None:
    log = await transacted(folder)
    commit(log, 7)
    commit(log, 8)
    await log.flush()
    assert any(each.endswith(".txnindex") for each in folder.names())
    await log.delete_before(log.end_offset)

    assert not any(each.endswith(".txnindex") for each in folder.names())
    assert [] == log.aborted_transactions(0, log.end_offset)
