"""A snapshot of producers never outlives the records that come after it."""

from __future__ import annotations

import pytest

from support.logs import batch
from support.transactions import NOW, abort, commit, committed, end, send
from trionet.broker.log import Directory, FolderDirectory, LastShutdown, Log, LogConfig
from trionet.broker.log.state._producer_state import decode_snapshot, snapshots_among
from trionet.errors import ApiError

SMALL = LogConfig(segment_bytes=2 * len(batch(producer=(7, 0, 0))))
LARGE = LogConfig()


def reopened(log: Log, *, was_clean: bool = False) -> Log:
    """The log as the next start opens it: after a kill, or after a clean stop."""
    last_shutdown = LastShutdown(
        was_clean=was_clean,
        recovery_point=log.stored_recovery_point,
        start_offset=log.start_offset,
        extent=log.extent,
    )
    return Log(log.directory, log.config, now_ms=NOW, last_shutdown=last_shutdown)


async def stopped_and_started(log: Log) -> Log:
    await log.close()
    return reopened(log, was_clean=True)


def write(log: Log, *sequences: int, producer_id: int = 7) -> None:
    for sequence in sequences:
        log.append(batch(timestamp=NOW, producer=(producer_id, 0, sequence)), NOW)


def is_duplicate(log: Log, sequence: int, producer_id: int = 7) -> bool:
    return not log.append(batch(timestamp=NOW, producer=(producer_id, 0, sequence)), NOW).size


async def written_and_deleted(folder: Directory, config: LogConfig) -> Log:
    """Six batches, of which a snapshot in the middle knows three; then all of them are deleted."""
    log = Log(folder, config, now_ms=NOW)
    write(log, 0, 1, 2)
    log = await stopped_and_started(log)
    write(log, 3, 4, 5)
    await log.delete_before(6)
    return log


@pytest.mark.parametrize("config", [SMALL, LARGE])
async def test_a_producer_goes_on_where_it_was_after_its_records_were_deleted(
    folder: FolderDirectory, config: LogConfig
) -> None:
    log = reopened(await written_and_deleted(folder, config))

    assert [True] * 3 == [is_duplicate(log, sequence) for sequence in (3, 4, 5)]
    assert 6 == log.end_offset
    write(log, 6)
    with pytest.raises(ApiError, match="expected 7"):
        write(log, 3 + 5)


async def test_a_producer_goes_on_where_it_was_after_its_records_have_expired(
    folder: FolderDirectory,
) -> None:
    log = Log(folder, LogConfig(retention_ms=1000), now_ms=NOW)
    write(log, 0, 1, 2)
    log = await stopped_and_started(log)
    write(log, 3, 4, 5)
    due = log.retention_due(NOW + 2000)
    assert 6 == due
    await log.delete_before(due)
    log = reopened(log)

    assert is_duplicate(log, 5)
    write(log, 6)


async def test_a_transaction_that_ended_before_its_records_were_deleted_is_not_open_again(
    folder: FolderDirectory,
) -> None:
    log = Log(folder, LARGE, now_ms=NOW)
    send(log, 7)
    log = await stopped_and_started(log)
    commit(log, 7)
    await log.delete_before(2)
    log = reopened(log)
    log.append(batch(value=b"later"), NOW)

    assert {} == log.open_transactions
    assert 3 == log.last_stable_offset
    assert [(2, b"later")] == committed(log)


async def test_a_transaction_whose_records_were_deleted_is_open_until_its_marker(
    folder: FolderDirectory,
) -> None:
    log = Log(folder, LARGE, now_ms=NOW)
    send(log, 7)
    await log.delete_before(1)
    log = reopened(log)

    assert {7: 0} == log.open_transactions
    send(log, 7)
    abort(log, 7)
    assert [] == committed(log)
    assert 3 == log.last_stable_offset


async def test_snapshots_inside_deleted_segments_go_with_them(folder: FolderDirectory) -> None:
    await written_and_deleted(folder, LARGE)

    assert [6] == snapshots_among(folder.names())


async def test_snapshots_inside_segments_that_are_left_stay(folder: FolderDirectory) -> None:
    log = Log(folder, SMALL, now_ms=NOW)
    write(log, 0, 1, 2)
    log = await stopped_and_started(log)
    write(log, 3)
    await log.delete_before(2)

    assert [2, 3] == snapshots_among(folder.names())


@pytest.mark.parametrize("offset", [2, 3])
async def test_the_snapshot_of_the_new_first_segment_is_there_before_the_old_one_goes(
    folder: FolderDirectory, offset: int
) -> None:
    """Just after a roll it is not yet, whether the new segment is deleted in part or not at all."""
    log = Log(folder, SMALL, now_ms=NOW)
    write(log, 0, 1, producer_id=7)
    write(log, 0, 1, producer_id=8)
    assert [] == snapshots_among(folder.names())
    await log.delete_before(offset)

    assert [2] == snapshots_among(folder.names())
    assert [7] == list(decode_snapshot(folder.read(f"{2:020d}.snapshot")))
    log = reopened(log)
    assert is_duplicate(log, 1, producer_id=7)
    assert is_duplicate(log, 1, producer_id=8)


async def test_records_are_deleted_though_their_producers_cannot_be_saved(
    folder: FolderDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    """As on a full disk. Until a later flush saves them, a kill makes the broker forget them."""
    log = Log(folder, LARGE, now_ms=NOW)
    write(log, 0, 1, 2)
    folder.folder(f"{3:020d}.snapshot.tmp")  # where the file has to be written first
    await log.delete_before(3)

    assert (3, 3) == (log.start_offset, log.first_segment_offset)
    assert [] == snapshots_among(folder.names())
    assert "-0: cannot save yet what is known of producers: [Errno 21] Is a dir" in caplog.text
    write(reopened(log), 10)
    folder.remove_folder(f"{3:020d}.snapshot.tmp")
    due = log.flush_due(NOW)
    assert due is not None
    await log.flush(due)
    assert [3] == snapshots_among(folder.names())


@pytest.mark.parametrize("was_clean", [True, False])
async def test_a_snapshot_from_before_the_first_segment_does_not_count(
    folder: FolderDirectory, was_clean: bool
) -> None:
    """A power failure brings back the names of files that were removed."""
    log = Log(folder, LARGE, now_ms=NOW)
    write(log, 0, 1, 2)
    await log.close()
    name = f"{3:020d}.snapshot"
    stale = folder.read(name)
    log = reopened(log, was_clean=True)
    write(log, 3, 4, 5)
    await log.delete_before(6)
    write(log, 6)
    if was_clean:
        await log.close()
        folder.remove(f"{7:020d}.snapshot")
    folder.remove(f"{6:020d}.snapshot")
    folder.write(name, 0, stale)
    log = reopened(log, was_clean=was_clean)

    assert is_duplicate(log, 6)
    write(log, 7)
    assert name not in folder.names()


async def test_a_log_that_begins_anew_forgets_the_snapshots_of_the_old_one(
    folder: FolderDirectory,
) -> None:
    log = Log(folder, LARGE, now_ms=NOW)
    write(log, 0, 1, 2)
    log = await stopped_and_started(log)
    write(log, 3, 4, 5)
    await log.flush()
    for name in folder.names():
        if name.endswith((".log", "index")):
            folder.remove(name)
    log = reopened(log)

    assert (6, 6) == (log.start_offset, log.end_offset)
    assert [] == snapshots_among(folder.names())
    log = reopened(log)
    write(log, 6, 7)
    log = reopened(log)
    assert is_duplicate(log, 6)


async def test_a_log_that_begins_anew_where_a_snapshot_lies_knows_its_producers(
    folder: FolderDirectory,
) -> None:
    log = Log(folder, LARGE, now_ms=NOW)
    write(log, 0, 1, 2)
    await log.close()
    folder.remove(f"{0:020d}.log")
    log = reopened(log, was_clean=True)

    assert is_duplicate(log, 2)
    write(log, 3)


async def aborted_in_two_segments(folder: Directory) -> Log:
    """A transaction of producer 7 ends before the first segment that is left; one of 8 in it."""
    log = Log(folder, LARGE, now_ms=NOW)
    send(log, 7)
    log = await stopped_and_started(log)
    commit(log, 7)
    await log.delete_before(2)
    log.append(batch(value=b"a"), NOW)
    send(log, 8, b"b")
    end(log, 8, is_commit=False)
    log.append(batch(value=b"c"), NOW)
    return log


async def test_an_index_of_aborted_transactions_is_rebuilt_from_what_is_known_at_its_segment(
    folder: FolderDirectory,
) -> None:
    log = Log(folder, LARGE, now_ms=NOW)
    send(log, 7)
    await log.close()
    name = f"{1:020d}.snapshot"
    stale = folder.read(name)
    log = reopened(log, was_clean=True)
    commit(log, 7)
    await log.delete_before(2)
    log.append(batch(value=b"a"), NOW)
    send(log, 8, b"b")
    end(log, 8, is_commit=False)
    log.append(batch(value=b"c"), NOW)
    await log.close()
    [before] = log.aborted_below(9)
    folder.write(name, 0, stale)
    for lost in ("snapshot", "txnindex"):
        folder.remove(f"{2:020d}.{lost}")
    log = reopened(log, was_clean=True)

    assert [before] == log.aborted_below(9)
    assert [(2, b"a"), (5, b"c")] == committed(log)


async def test_a_damaged_snapshot_and_a_missing_index_of_aborted_transactions_stop_no_start(
    folder: FolderDirectory,
) -> None:
    log = await aborted_in_two_segments(folder)
    await log.close()
    [before] = log.aborted_below(9)
    for offset in snapshots_among(folder.names()):
        folder.write(f"{offset:020d}.snapshot", 3, b"\xff\xff\xff")
    folder.remove(f"{2:020d}.txnindex")
    log = reopened(log, was_clean=True)

    assert [before] == log.aborted_below(9)
    assert [(2, b"a"), (5, b"c")] == committed(log)


async def test_a_damaged_snapshot_at_the_start_of_a_scan_is_written_again(
    folder: FolderDirectory,
) -> None:
    log = Log(folder, SMALL, now_ms=NOW)
    write(log, 0, 1, 2)
    await log.flush()
    folder.write(f"{2:020d}.snapshot", 3, b"\xff\xff\xff")
    log = reopened(log)

    assert [7] == list(decode_snapshot(folder.read(f"{2:020d}.snapshot")))
    await log.delete_before(2)
    assert is_duplicate(reopened(log), 1)
