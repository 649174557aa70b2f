from __future__ import annotations

import pytest

from support.logs import batch
from trionet.broker.log import Directory, LastShutdown, Log, LogConfig
from trionet.broker.log.state._producer_state import (
    decode_snapshot,
    encode_snapshot,
    snapshots_among,
)
from trionet.errors import ApiError

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
