"""What a log is after a stop, a kill, and the leftovers of earlier releases.

An append that failed after what was written could leave its bytes in the file, and its first index
entry had a position and no offset, so that all that followed had the offset of one batch and the
position of another. After a graceful stop nothing was scanned, and the refused batches were served.
"""

from __future__ import annotations

import logging
import os
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.hostile_batches import changed
from support.log_agreement import check_agreement
from support.logs import batch, headers, placed, stored, timed_batch
from trionet.broker.log import (
    Directory,
    FolderDirectory,
    LastShutdown,
    Log,
    LogConfig,
    MemoryDirectory,
    OffsetAndTimestamp,
)
from trionet.errors import ApiError
from trionet.protocol.records._batch import iter_batches, read_header

NOW = 5_000
ONE = batch()
FIRST = "00000000000000000000.log"


def reopen(
    directory: Directory,
    config: LogConfig | None = None,
    *,
    recovery_point: int = 0,
    start_offset: int = 0,
) -> Log:
    """Start after an unclean stop."""
    last_shutdown = LastShutdown(recovery_point=recovery_point, start_offset=start_offset)
    return Log(directory, config, now_ms=NOW, last_shutdown=last_shutdown, topic="orders")


def written(directory: Directory, sent: list[bytes], config: LogConfig | None = None) -> Log:
    log = Log(directory, config, now_ms=NOW, topic="orders")
    for data in sent:
        log.append(data, NOW)
    return log


def copy_of(directory: Directory) -> MemoryDirectory:
    """The same files in another folder: the machine after the process was killed."""
    copy = MemoryDirectory()
    for name in directory.names():
        copy.write(name, 0, directory.read(name))
    return copy


def test_killed_log_loses_nothing(directory: Directory) -> None:
    sent = [batch(count) for count in (3, 1, 4)]
    written(directory, sent)
    log = reopen(directory)

    assert b"".join(placed(sent)) == stored(log)
    assert 8 == log.end_offset == log.recovery_point
    assert 8 == log.append(ONE, NOW).first_offset


@pytest.mark.parametrize(
    "stem", ["09223372036854775808", "99999999999999999999", "0000000000000000000²"]
)
@pytest.mark.parametrize("suffix", ["log", "index", "snapshot"])
def test_files_whose_names_are_no_offsets_are_left_alone(
    directory: Directory, stem: str, suffix: str
) -> None:
    written(directory, [batch(3)])
    directory.write(f"{stem}.{suffix}", 0, b"of somebody else")
    log = reopen(directory)

    assert 3 == log.append(ONE, NOW).first_offset
    assert b"of somebody else" == directory.read(f"{stem}.{suffix}")


def test_torn_batch_is_cut_and_reported(
    directory: Directory, caplog: pytest.LogCaptureFixture
) -> None:
    written(directory, [batch(3), batch(2)])
    size = directory.size(FIRST)
    directory.truncate(FIRST, size - 1)
    with caplog.at_level(logging.WARNING, "trionet.broker.log"):
        log = reopen(directory)

    kept = len(batch(3))
    assert next(placed([batch(3)])) == stored(log)
    assert (3, kept, kept) == (log.end_offset, log.size, directory.size(FIRST))
    (message,) = caplog.messages
    assert f"orders-0: truncated at offset 3, byte {kept} of {FIRST}" in message
    assert f"dropped {size - 1 - kept} bytes" in message


def test_nothing_is_reported_when_nothing_is_cut(
    directory: Directory, caplog: pytest.LogCaptureFixture
) -> None:
    written(directory, [batch(3), batch(2)])
    with caplog.at_level(logging.WARNING, "trionet.broker.log"):
        reopen(directory)

    assert [] == caplog.messages


SENT = [batch(3, b"first"), batch(1, b"second"), batch(2, b"third" * 10)]
FILE = b"".join(placed(SENT))
ENDS = [0, len(SENT[0]), len(SENT[0]) + len(SENT[1]), len(FILE)]


@pytest.mark.parametrize("size", range(len(FILE)))
def test_file_cut_at_any_byte_keeps_the_whole_batches_before(size: int) -> None:
    directory = MemoryDirectory()
    directory.write(FIRST, 0, FILE[:size])
    log = reopen(directory)

    kept = max(end for end in ENDS if end <= size)
    assert (FILE[:kept], kept) == (stored(log), directory.size(FIRST))


def without_epochs(data: bytes) -> bytes:
    """The leader epoch lies outside the CRC and is not used for anything on one node."""
    cleaned = bytearray(data)
    for position, _ in iter_batches(data):
        cleaned[position + 12 : position + 16] = bytes(4)
    return bytes(cleaned)


@pytest.mark.slow
@settings(max_examples=400)
@given(st.integers(0, len(FILE) - 1), st.integers(1, 255))
def test_garbled_byte_ends_the_log_at_its_batch(at: int, flip: int) -> None:
    garbled = bytearray(FILE)
    garbled[at] ^= flip
    directory = MemoryDirectory()
    directory.write(FIRST, 0, garbled)
    log = reopen(directory)

    hit = max(end for end in ENDS if end <= at)
    expected = FILE if 12 <= at - hit < 16 else FILE[:hit]
    assert expected == without_epochs(stored(log))


@settings(max_examples=200)
@given(st.integers(0, len(FILE)), st.binary(min_size=1, max_size=300))
def test_any_rest_after_a_cut_never_makes_up_records(at: int, rest: bytes) -> None:
    directory = MemoryDirectory()
    directory.write(FIRST, 0, FILE[:at] + rest)
    log = reopen(directory)

    kept = without_epochs(stored(log))
    assert FILE.startswith(kept)
    assert len(kept) >= max(end for end in ENDS if end <= at)
    assert (log.end_offset, len(kept)) == (log.append(ONE, NOW).first_offset, log.size - len(ONE))


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=12),
    st.sampled_from([300, 700, 10**6]),
    st.data(),
)
def test_damage_anywhere_leaves_a_prefix_that_can_be_continued(
    counts: list[int], segment_bytes: int, data: st.DataObject
) -> None:
    config = LogConfig(segment_bytes=segment_bytes, index_interval_bytes=100)
    directory = MemoryDirectory()
    sent = [batch(count, producer=(7, 0, sum(counts[:n]))) for n, count in enumerate(counts)]
    written(directory, sent, config)
    directory = copy_of(directory)
    name = data.draw(st.sampled_from([each for each in directory.names() if ".log" in each]))
    size = directory.size(name)
    if data.draw(st.booleans()):
        directory.truncate(name, data.draw(st.integers(0, size)))
    elif size:
        at = data.draw(st.integers(0, size - 1))
        directory.write(name, at, data.draw(st.binary(min_size=1, max_size=min(50, size - at))))
    log = reopen(directory, config)
    kept = len(headers(log))

    whole = b"".join(placed(sent))
    assert whole.startswith(without_epochs(stored(log)))
    # What is left knows the batches it has, and goes on with the next one.
    for number, again in enumerate(sent[max(0, kept - 5) :], max(0, kept - 5)):
        assert (number < kept) == (not log.append(again, NOW).size)
    assert whole == without_epochs(stored(log))


def test_segments_after_the_damage_are_removed(
    directory: Directory, caplog: pytest.LogCaptureFixture
) -> None:
    config = LogConfig(segment_bytes=2 * len(ONE))
    written(directory, [ONE] * 7, config)
    directory.write("00000000000000000002.log", len(ONE) + 70, b"\xff\xff")
    with caplog.at_level(logging.WARNING, "trionet.broker.log"):
        log = reopen(directory, config)

    assert (3, 2) == (log.end_offset, len(log._segments.all))
    assert {0, 2} == {int(name[:20]) for name in directory.names() if name[0] == "0"}
    assert f"dropped {4 * len(ONE)} bytes and 2 newer segments" in caplog.text
    assert 3 == log.append(ONE, NOW).first_offset


def test_missing_segment_ends_the_log(directory: Directory) -> None:
    config = LogConfig(segment_bytes=2 * len(ONE))
    written(directory, [ONE] * 7, config)
    directory.remove("00000000000000000002.log")
    log = reopen(directory, config)

    assert (2, 1) == (log.end_offset, len(log._segments.all))


def test_missing_segment_of_a_compacted_log_is_taken_for_cleaned_away(
    directory: Directory,
) -> None:
    config = LogConfig(segment_bytes=2 * len(ONE), cleanup_policy="compact")
    written(directory, [ONE] * 7, config)
    directory.remove("00000000000000000002.log")
    log = reopen(directory, config)

    assert (7, 3) == (log.end_offset, len(log._segments.all))
    assert 4 == log.read(2, 1000).first_offset == log.read(3, 1000).first_offset
    assert [0, 1, 4, 5, 6] == [header.base_offset for header in headers(log)]


def test_gap_inside_a_segment_is_damage_unless_the_log_is_compacted(directory: Directory) -> None:
    directory.write(FIRST, 0, next(placed([ONE])) + next(placed([ONE], 5)))
    copy = copy_of(directory)

    assert 1 == reopen(directory).end_offset
    compacted = reopen(copy, LogConfig(cleanup_policy="compact"))
    assert 6 == compacted.end_offset
    assert 5 == compacted.read(3, 100).first_offset


def first_of(log: Log) -> int:
    """The first offset that is not that of a batch without records."""
    return next(header.base_offset for header in headers(log) if header.count)


def test_segments_below_the_recovery_point_are_trusted(folder: FolderDirectory) -> None:
    config = LogConfig(segment_bytes=2 * len(ONE))
    log = written(folder, [ONE] * 7, config)
    for segment in log._segments.all:
        segment.indexes.save()
    # Damage that a scan would find: a byte of a value.
    folder.write(FIRST, len(ONE) - 1, b"\xff")

    assert 0 == first_of(reopen(folder, config, recovery_point=2))
    assert 2 == first_of(reopen(folder, config, recovery_point=1))


def test_damage_below_the_recovery_point_is_an_error(
    directory: Directory, caplog: pytest.LogCaptureFixture
) -> None:
    written(directory, [ONE] * 7)
    directory.write(FIRST, 3 * len(ONE) - 1, b"\xff")
    with caplog.at_level(logging.WARNING, "trionet.broker.log"):
        log = reopen(directory, recovery_point=5)

    # What is gone had been on the disk: nothing else gets its offsets.
    assert (5, 5) == (log.end_offset, log.recovery_point)
    assert [1, 1, 0] == [header.count for header in headers(log)]
    assert [logging.ERROR] == [record.levelno for record in caplog.records]


async def test_nothing_is_scanned_after_a_clean_stop(directory: Directory) -> None:
    log = written(directory, [ONE] * 5)
    await log.close()
    # A scan would cut here.
    directory.write(FIRST, len(ONE) - 1, b"\xff")
    log = Log(directory, now_ms=NOW, last_shutdown=LastShutdown(was_clean=True))

    assert 5 == log.end_offset == log.recovery_point


@pytest.mark.parametrize("rest", [b"x", bytes(100), ONE[:-1]])
async def test_end_that_is_no_batch_is_scanned_in_spite_of_a_clean_stop(
    directory: Directory, rest: bytes
) -> None:
    log = written(directory, [ONE] * 5)
    await log.close()
    directory.write(FIRST, 5 * len(ONE), rest)
    log = Log(directory, now_ms=NOW, last_shutdown=LastShutdown(was_clean=True))

    assert (5, 5 * len(ONE)) == (log.end_offset, directory.size(FIRST))


@pytest.mark.parametrize("was_clean", [True, False])
@pytest.mark.parametrize("damage", ["missing", "torn", "wrong", "zeros"])
@pytest.mark.parametrize("suffix", ["index", "timeindex"])
async def test_impossible_indexes_are_made_again(
    directory: Directory, was_clean: bool, damage: str, suffix: str
) -> None:
    config = LogConfig(segment_bytes=5 * len(timed_batch(1)), index_interval_bytes=1)
    log = Log(directory, config, now_ms=NOW)
    for timestamp in range(20):
        log.append(timed_batch(timestamp), NOW)
    await log.close()
    for name in [each for each in directory.names() if each.endswith("." + suffix)]:
        right = directory.read(name)
        match damage:
            case "missing":
                directory.remove(name)
            case "torn":
                directory.truncate(name, len(right) - 1)
            case "wrong":
                directory.write(name, 0, b"\xff" * len(right))
            case "zeros":
                directory.write(name, len(right), bytes(24))
    last_shutdown = LastShutdown(was_clean=was_clean, recovery_point=20)
    log = Log(directory, config, now_ms=NOW, last_shutdown=last_shutdown)

    assert 20 == log.end_offset
    for number in range(20):
        assert number == log.read(number, 100).first_offset
        assert OffsetAndTimestamp(number, number) == log.offset_for_timestamp(number)
    assert OffsetAndTimestamp(19, 19) == log.max_timestamp_offset()


def test_trusted_segment_with_a_hole_keeps_what_can_be_read(
    directory: Directory, caplog: pytest.LogCaptureFixture
) -> None:
    config = LogConfig(segment_bytes=4 * len(ONE))
    written(directory, [ONE] * 6, config)
    directory.write(FIRST, 2 * len(ONE), bytes(len(ONE)))
    # Without an index it has to be made again, and headers cannot be followed through a hole.
    directory.remove("00000000000000000000.index")
    log = reopen(directory, config, recovery_point=4)

    assert 6 == log.end_offset
    assert "cannot be read" in caplog.text
    assert 1 == log.read(1, 100).first_offset
    with pytest.raises(ApiError):
        log.read(2, 100)
    assert 4 == log.read(4, 100).first_offset


def test_remains_of_removals_are_removed(directory: Directory) -> None:
    for name in (f"{FIRST}.deleted", "00000000000000000005.snapshot.tmp", f"{FIRST}.cleaned"):
        directory.write(name, 0, b"x")
    for suffix in ("index", "timeindex", "txnindex"):
        directory.write(f"00000000000000000007.{suffix}", 0, b"x")
    for name in ("note.log", "my.index", "leader-epoch-checkpoint"):
        directory.write(name, 0, b"not a segment")
    reopen(directory)

    others = [name for name in directory.names() if not name.startswith(FIRST[:20])]
    assert FIRST in directory.names()
    assert ["leader-epoch-checkpoint", "my.index", "note.log"] == others


def test_log_that_ends_before_its_start_begins_anew_there(directory: Directory) -> None:
    written(directory, [ONE] * 3)
    log = reopen(directory, start_offset=10)

    assert (10, 10, 0) == (log.start_offset, log.end_offset, log.size)
    assert 10 == log.append(ONE, NOW).first_offset


def test_new_log_starts_at_its_start_offset(directory: Directory) -> None:
    log = reopen(directory, start_offset=42)

    assert (42, 42) == (log.start_offset, log.append(ONE, NOW).first_offset)


def test_first_segment_names_the_start(directory: Directory) -> None:
    directory.write("00000000000000000042.log", 0, next(placed([ONE], 42)))
    log = reopen(directory)

    assert (42, 43) == (log.start_offset, log.end_offset)


def test_recovered_bytes_are_on_the_disk(directory: Directory) -> None:
    written(directory, [ONE] * 3)

    assert 3 == reopen(directory).recovery_point


def test_scan_reads_batches_larger_than_its_memory(directory: Directory) -> None:
    config = LogConfig(max_message_bytes=10**7)
    big = batch(1, os.urandom(3_000_000))
    written(directory, [ONE, big, ONE], config)
    log = reopen(directory, config)

    assert [len(ONE), len(big), len(ONE)] == [header.size for header in headers(log)]
    directory.write(FIRST, len(ONE) + 2_900_000, b"\0\0\0\0\0\0\0\0")
    assert 1 == reopen(directory, config).end_offset


def test_first_timestamp_counts_for_rolling_after_a_restart(tmp_path: Path) -> None:
    directory = FolderDirectory(tmp_path)
    config = LogConfig(segment_ms=100)
    written(directory, [timed_batch(1000)], config)
    log = reopen(directory, config)
    log.append(timed_batch(1100), NOW)
    assert 1 == len(log._segments.all)
    log.append(timed_batch(1101), NOW)

    assert 2 == len(log._segments.all)


COUNT_MAX = 2**31 - 1
CLEAN = LastShutdown(was_clean=True)
AT_0, AT_40 = "00000000000000000000", "00000000000000000040"
GOOD_ONE = batch(1, b"good")
HOSTILE = changed(GOOD_ONE, count=COUNT_MAX, last_offset_delta=COUNT_MAX - 1)


def refused(count: int, end_offset: int, claimed: int = COUNT_MAX) -> bytes:
    """Batches that were written and never counted."""
    data = changed(GOOD_ONE, count=claimed, last_offset_delta=claimed - 1)
    return b"".join(placed([data] * count, end_offset))


def index_of(log: bytes, *entries: tuple[int, int]) -> bytes:
    assert all(position < len(log) for _, position in entries)
    return b"".join(struct.pack(">ii", *entry) for entry in entries)


def folder_with(
    directory: Directory, log: bytes, index: bytes = b"", name: str = AT_0
) -> Directory:
    directory.write(f"{name}.log", 0, log)
    directory.write(f"{name}.index", 0, index)
    directory.write(f"{name}.timeindex", 0, b"")
    directory.write("leader-epoch-checkpoint", 0, b"0\n1\n0 0\n")
    return directory


def opened(directory: Directory) -> Log:
    return Log(directory, LogConfig(index_interval_bytes=0), now_ms=NOW, last_shutdown=CLEAN)


GOOD = b"".join(placed([GOOD_ONE] * 40))


@pytest.mark.parametrize("claimed", [2**30, COUNT_MAX])
def test_refused_batches_at_the_end_are_cut_off(directory: Directory, claimed: int) -> None:
    log = opened(folder_with(directory, GOOD + refused(200, 40, claimed)))

    assert (40, GOOD) == (log.end_offset, stored(log))
    log.append(GOOD_ONE, NOW)
    assert (
        next(placed([GOOD_ONE], log.end_offset - 1, log.leader_epoch))
        == stored(log)[-len(GOOD_ONE) :]
    )
    check_agreement(log)


@pytest.mark.parametrize("cut", [0, 1, 20, len(GOOD_ONE)])
def test_what_refused_batches_leave_after_later_ones_is_cut_off(
    directory: Directory, cut: int
) -> None:
    torn = refused(50, 30)[cut:]
    log = opened(folder_with(directory, GOOD + torn))

    assert (40, GOOD) == (log.end_offset, stored(log))
    log.append(GOOD_ONE, NOW)
    check_agreement(log)


def test_an_empty_segment_that_took_refused_batches_alone_is_empty_again(
    directory: Directory,
) -> None:
    folder_with(directory, GOOD)
    folder_with(directory, refused(200, 40), name=AT_40)
    log = opened(directory)

    assert (40, GOOD) == (log.end_offset, stored(log))
    assert 40 == log.append(GOOD_ONE, NOW).first_offset


def test_a_batch_that_claims_too_much_stays_where_records_follow_it(directory: Directory) -> None:
    # An earlier release has acknowledged it, and what lies after it, too.
    first = next(placed([changed(GOOD_ONE, count=1000, last_offset_delta=999)]))
    good = next(placed([GOOD_ONE], 1000))
    directory.write(f"{AT_0}.log", 0, first + good + good[:20])
    log = Log(directory, now_ms=NOW)

    assert (1001, first + good) == (log.end_offset, stored(log))


@pytest.mark.parametrize("is_rolled", [False, True])
def test_entries_with_the_positions_of_others_are_made_again(
    directory: Directory, is_rolled: bool
) -> None:
    size = len(GOOD_ONE)
    # The second was noted for a refused batch at 30, between others'; from there on all are wrong.
    entries = [(9, 9 * size), (19, 10 * size + 7), (29, 19 * size), (39, 29 * size)]
    folder_with(directory, GOOD, index_of(GOOD, *entries))
    if is_rolled:
        folder_with(directory, b"", name=AT_40)
    log = opened(directory)

    for offset in range(40):
        read = log.read(offset, 100)
        head = read.records.file.read_at(read.records.offset, 61)
        assert offset == read.first_offset == read_header(head).base_offset
    check_agreement(log)


def test_refused_bytes_after_a_rolled_segment_are_not_served(
    directory: Directory, caplog: pytest.LogCaptureFixture
) -> None:
    torn = refused(5, 40, claimed=3)[10:]
    later = next(placed([GOOD_ONE], 40))
    folder_with(directory, GOOD + refused(5, 40, claimed=3) + torn)
    folder_with(directory, later, name=AT_40)
    with caplog.at_level(logging.WARNING, "trionet.broker.log"):
        log = opened(directory)

        assert GOOD + later == stored(log)
    [message] = caplog.messages
    assert f"after the last record of {AT_0}.log, starting at byte {len(GOOD)}" in message


def test_indexes_are_made_again_of_batches_that_no_entry_can_describe(
    directory: Directory,
) -> None:
    hostile = refused(200, 40)
    folder_with(directory, GOOD + hostile)
    directory.remove(f"{AT_0}.index")
    folder_with(directory, next(placed([GOOD_ONE], 40)), name=AT_40)
    log = opened(directory)

    assert GOOD + next(placed([GOOD_ONE], 40)) == stored(log)
