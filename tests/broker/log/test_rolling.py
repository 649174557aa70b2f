from __future__ import annotations

import struct

import pytest
import trio

from support.hostile_batches import changed
from support.log_agreement import check_agreement
from support.logs import batch, headers, placed, stored
from trionet.broker.log import Directory, LastShutdown, Log, LogConfig
from trionet.errors import ApiError
from trionet.protocol.error_codes import RECORD_LIST_TOO_LARGE
from trionet.protocol.records._batch import PREFIX_SIZE
from trionet.protocol.records.compression._codecs import ZSTD

NOW = 5_000
ONE = batch()


def segments(directory: Directory) -> list[int]:
    return [int(name[:20]) for name in directory.names() if name.endswith(".log")]


def test_files_are_named_by_their_first_offset(directory: Directory) -> None:
    log = Log(directory, LogConfig(segment_bytes=2 * len(ONE)), now_ms=NOW)
    for _ in range(5):
        log.append(ONE, NOW)

    assert [0, 2, 4] == segments(directory)
    assert 3 == len(log._segments.all)
    assert b"".join(placed([ONE] * 5)) == stored(log)


def test_batch_that_fits_exactly_does_not_roll(directory: Directory) -> None:
    log = Log(directory, LogConfig(segment_bytes=3 * len(ONE)), now_ms=NOW)
    log.append(ONE * 2, NOW)
    log.append(ONE, NOW)
    log.append(ONE, NOW)

    assert [0, 3] == segments(directory)


def test_batches_of_one_call_stay_in_one_segment(directory: Directory) -> None:
    log = Log(directory, LogConfig(segment_bytes=3 * len(ONE)), now_ms=NOW)
    log.append(ONE, NOW)
    log.append(ONE * 3, NOW)

    assert [0, 1] == segments(directory)


def test_age_is_measured_by_the_records_timestamps(directory: Directory) -> None:
    log = Log(directory, LogConfig(segment_ms=100), now_ms=NOW)
    log.append(batch(timestamp=1000), NOW)
    log.append(batch(timestamp=1100), NOW + 10**6)
    log.append(batch(timestamp=1101), NOW)

    assert [0, 2] == segments(directory)


def test_age_without_timestamps_is_measured_by_the_clock(directory: Directory) -> None:
    log = Log(directory, LogConfig(segment_ms=100), now_ms=NOW)
    timeless = batch(timestamp=-1)
    log.append(timeless, NOW)
    log.append(timeless, NOW + 100)
    log.append(timeless, NOW + 101)

    assert [0, 2] == segments(directory)


def test_empty_segment_does_not_grow_old(directory: Directory) -> None:
    log = Log(directory, LogConfig(segment_ms=100), now_ms=NOW)
    log.append(batch(timestamp=-1), NOW + 10**6)

    assert [0] == segments(directory)


def test_jitter_rolls_earlier(directory: Directory) -> None:
    config = LogConfig(segment_ms=1000, segment_jitter_ms=1000)
    log = Log(directory, config, now_ms=NOW, topic="t")
    limit = config.segment_age_ms_max("t-0/0")
    log.append(batch(timestamp=1000), NOW)
    log.append(batch(timestamp=1000 + limit), NOW)
    log.append(batch(timestamp=1001 + limit), NOW)

    assert 0 < limit < 1000
    assert [0, 2] == segments(directory)


def test_full_offset_index_rolls(directory: Directory) -> None:
    config = LogConfig(segment_index_bytes=3 * 12 + 12, index_interval_bytes=1)
    log = Log(directory, config, now_ms=NOW)
    # The first batch gets no entry; then one each: 6 entries of 8 bytes are 48.
    for _ in range(9):
        log.append(ONE, NOW)

    assert [0, 7] == segments(directory)


def test_full_time_index_rolls(directory: Directory) -> None:
    config = LogConfig(segment_index_bytes=4 * 12, index_interval_bytes=1)
    log = Log(directory, config, now_ms=NOW)
    for timestamp in range(6):
        log.append(batch(timestamp=1000 + timestamp), NOW)

    # Three entries fill it: the place of the fourth is for the end of the segment.
    assert [0, 4] == segments(directory)


def test_an_append_that_no_segment_can_hold_is_refused_before_anything_is_written(
    directory: Directory,
) -> None:
    vast = batch(1, b"x" * 470_000)
    most = changed(vast, count=2**31 - 1, last_offset_delta=2**31 - 2, attributes=ZSTD)
    log = Log(directory, now_ms=NOW)
    log.append(ONE, NOW)
    with pytest.raises(ApiError) as raised:
        log.append(most * 2, NOW)

    assert RECORD_LIST_TOO_LARGE == raised.value.error_code
    assert len(ONE) == directory.size("00000000000000000000.log") == log.size
    assert [0] == segments(directory)


def test_claimed_offsets_that_fit_a_segment_of_their_own_get_one(directory: Directory) -> None:
    vast = batch(1, b"x" * 470_000)
    most = changed(vast, count=2**31 - 1, last_offset_delta=2**31 - 2, attributes=ZSTD)
    log = Log(directory, LogConfig(index_interval_bytes=0), now_ms=NOW)
    log.append(ONE, NOW)
    for _ in range(2):
        log.append(most, NOW)
        log.append(ONE, NOW)
    after = log.end_offset
    log.append(ONE, NOW)

    # The last of 2**31 - 1 records after one is just near enough to the first.
    assert [0, 2**31, 2**32] == segments(directory)
    assert after == log.read(after, 1000).first_offset
    check_agreement(log)


def test_offset_that_is_too_far_from_the_base_rolls(directory: Directory) -> None:
    log = Log(directory, now_ms=NOW)
    log.append(ONE, NOW)
    log.end_offset = 2**31 - 1
    log.append(ONE, NOW)
    log.append(ONE, NOW)

    assert [0, 2**31] == segments(directory)


async def test_index_entries_are_kafkas(directory: Directory) -> None:
    log = Log(directory, LogConfig(index_interval_bytes=2 * len(ONE)), now_ms=NOW)
    for number in range(8):
        log.append(batch(timestamp=1000 + number % 5), NOW)
    await log.close()

    # After more than two batches an entry is made before the next one: last offset and position.
    size = len(ONE)
    assert struct.pack(">iiii", 3, 3 * size, 6, 6 * size) == directory.read(
        "00000000000000000000.index"
    )
    assert struct.pack(">qiqi", 1003, 3, 1004, 4) == directory.read(
        "00000000000000000000.timeindex"
    )


async def test_index_offsets_are_the_last_of_their_batch(directory: Directory) -> None:
    log = Log(directory, LogConfig(index_interval_bytes=1), now_ms=NOW)
    log.append(batch(5), NOW)
    log.append(batch(7, timestamp=2000), NOW)
    await log.close()

    assert struct.pack(">ii", 11, len(batch(5))) == directory.read("00000000000000000000.index")
    assert struct.pack(">qi", 2000, 11) == directory.read("00000000000000000000.timeindex")


async def test_every_segment_has_its_files_after_a_close(directory: Directory) -> None:
    log = Log(directory, LogConfig(segment_bytes=2 * len(ONE)), now_ms=NOW)
    for _ in range(5):
        log.append(ONE, NOW)
    await log.close()
    names = directory.names()

    for base_offset in (0, 2, 4):
        for suffix in ("log", "index", "timeindex"):
            assert f"{base_offset:020d}.{suffix}" in names
    assert "00000000000000000005.snapshot" in names


async def test_flush_after_a_roll_saves_indexes_and_snapshot(directory: Directory) -> None:
    log = Log(directory, LogConfig(segment_bytes=2 * len(ONE)), now_ms=NOW)
    for number in range(3):
        log.append(batch(timestamp=7, producer=(9, 0, number)), NOW)
    if not directory.is_durable:
        assert log.flush_due(NOW) is None
        return
    due = log.flush_due(NOW)
    await log.flush(due)

    assert 2 == due == log.recovery_point - 1
    assert log.flush_due(NOW) is None
    assert struct.pack(">qi", 7, 0) == directory.read("00000000000000000000.timeindex")
    assert "00000000000000000002.snapshot" in directory.names()


async def test_finished_segments_stay_readable_after_their_release(directory: Directory) -> None:
    log = Log(directory, LogConfig(segment_bytes=2 * len(ONE)), now_ms=NOW)
    for number in range(40):
        log.append(batch(timestamp=number), NOW)
        if number % 7 == 0:
            await log.flush()

    assert b"".join(placed([batch(timestamp=number) for number in range(40)])) == stored(log)


@pytest.mark.parametrize("count", [1, 3])
async def test_log_goes_on_where_it_was_closed(directory: Directory, count: int) -> None:
    config = LogConfig(segment_bytes=4 * len(ONE), index_interval_bytes=1)
    sent = [batch(timestamp=1000 + number) for number in range(4 * count)]
    for start in range(0, 4 * count, count):
        last_shutdown = LastShutdown(was_clean=True, recovery_point=start)
        log = Log(directory, config, now_ms=NOW, last_shutdown=last_shutdown)
        assert start == log.end_offset == log.recovery_point
        for data in sent[start : start + count]:
            log.append(data, NOW)
        await log.close()
    log = Log(directory, config, now_ms=NOW, last_shutdown=LastShutdown(was_clean=True))

    assert b"".join(placed(sent)) == stored(log)
    assert [1000 + number for number in range(4 * count)] == [
        header.max_timestamp for header in headers(log)
    ]


def test_size_is_that_of_all_files(directory: Directory) -> None:
    log = Log(directory, LogConfig(segment_bytes=2 * len(ONE)), now_ms=NOW)
    for _ in range(5):
        log.append(ONE, NOW)

    files = [name for name in directory.names() if name.endswith(".log")]
    assert 5 * len(ONE) == log.size == sum(map(directory.size, files))
    assert len(ONE) > PREFIX_SIZE


async def test_threads_read_while_the_loop_appends(directory: Directory) -> None:
    log = Log(directory, LogConfig(segment_bytes=20_000, index_interval_bytes=500), now_ms=NOW)
    log.append(ONE, NOW)
    reading = trio.Event()
    done = False

    def read() -> None:
        assert stored(log)[61:70] == ONE[61:70]
        assert headers(log)[-1].last_offset < log.end_offset

    def read_on() -> None:
        read()
        trio.from_thread.run_sync(reading.set)
        while not done:
            read()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.to_thread.run_sync, read_on)
        # Else a slow machine appends all before the thread begins.
        await reading.wait()
        for number in range(1500):
            log.append(ONE * (1 + number % 3), NOW)
            if number % 50 == 0:
                await log.flush()
        done = True
