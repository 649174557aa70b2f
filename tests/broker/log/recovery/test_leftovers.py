"""What earlier releases could leave on a disk: an append that failed after what was written.

Its bytes stayed in the file, and its first index entry had a position and no offset, so that all
that followed had the offset of one batch and the position of another. After a graceful stop nothing
was scanned, and the refused batches were served.
"""

from __future__ import annotations

import logging
import struct

import pytest

from support.hostile_batches import changed
from support.log_agreement import check_agreement
from support.logs import batch, placed, stored
from trionet.broker.log import Directory, LastShutdown, Log, LogConfig
from trionet.protocol.records._batch import read_header

NOW = 5_000
COUNT_MAX = 2**31 - 1
CLEAN = LastShutdown(was_clean=True)
FIRST, SECOND = "00000000000000000000", "00000000000000000040"
ONE = batch(1, b"good")
HOSTILE = changed(ONE, count=COUNT_MAX, last_offset_delta=COUNT_MAX - 1)


def refused(count: int, end_offset: int, claimed: int = COUNT_MAX) -> bytes:
    """Batches that were written and never counted."""
    data = changed(ONE, count=claimed, last_offset_delta=claimed - 1)
    return b"".join(placed([data] * count, end_offset))


def index_of(log: bytes, *entries: tuple[int, int]) -> bytes:
    assert all(position < len(log) for _, position in entries)
    return b"".join(struct.pack(">ii", *entry) for entry in entries)


def folder_with(
    directory: Directory, log: bytes, index: bytes = b"", name: str = FIRST
) -> Directory:
    directory.write(f"{name}.log", 0, log)
    directory.write(f"{name}.index", 0, index)
    directory.write(f"{name}.timeindex", 0, b"")
    directory.write("leader-epoch-checkpoint", 0, b"0\n1\n0 0\n")
    return directory


def opened(directory: Directory) -> Log:
    return Log(directory, LogConfig(index_interval_bytes=0), now_ms=NOW, last_shutdown=CLEAN)


GOOD = b"".join(placed([ONE] * 40))


@pytest.mark.parametrize("claimed", [2**30, COUNT_MAX])
def test_refused_batches_at_the_end_are_cut_off(directory: Directory, claimed: int) -> None:
    log = opened(folder_with(directory, GOOD + refused(200, 40, claimed)))

    assert (40, GOOD) == (log.end_offset, stored(log))
    log.append(ONE, NOW)
    assert next(placed([ONE], log.end_offset - 1, log.leader_epoch)) == stored(log)[-len(ONE) :]
    check_agreement(log)


@pytest.mark.parametrize("cut", [0, 1, 20, len(ONE)])
def test_what_refused_batches_leave_after_later_ones_is_cut_off(
    directory: Directory, cut: int
) -> None:
    torn = refused(50, 30)[cut:]
    log = opened(folder_with(directory, GOOD + torn))

    assert (40, GOOD) == (log.end_offset, stored(log))
    log.append(ONE, NOW)
    check_agreement(log)


def test_an_empty_segment_that_took_refused_batches_alone_is_empty_again(
    directory: Directory,
) -> None:
    folder_with(directory, GOOD)
    folder_with(directory, refused(200, 40), name=SECOND)
    log = opened(directory)

    assert (40, GOOD) == (log.end_offset, stored(log))
    assert 40 == log.append(ONE, NOW).first_offset


def test_a_batch_that_claims_too_much_stays_where_records_follow_it(directory: Directory) -> None:
    # An earlier release has acknowledged it, and what lies after it, too.
    first = next(placed([changed(ONE, count=1000, last_offset_delta=999)]))
    good = next(placed([ONE], 1000))
    directory.write(f"{FIRST}.log", 0, first + good + good[:20])
    log = Log(directory, now_ms=NOW)

    assert (1001, first + good) == (log.end_offset, stored(log))


@pytest.mark.parametrize("is_rolled", [False, True])
def test_entries_with_the_positions_of_others_are_made_again(
    directory: Directory, is_rolled: bool
) -> None:
    size = len(ONE)
    # The second was noted for a refused batch at 30, between others'; from there on all are wrong.
    entries = [(9, 9 * size), (19, 10 * size + 7), (29, 19 * size), (39, 29 * size)]
    folder_with(directory, GOOD, index_of(GOOD, *entries))
    if is_rolled:
        folder_with(directory, b"", name=SECOND)
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
    later = next(placed([ONE], 40))
    folder_with(directory, GOOD + refused(5, 40, claimed=3) + torn)
    folder_with(directory, later, name=SECOND)
    with caplog.at_level(logging.WARNING, "trionet.broker.log"):
        log = opened(directory)

        assert GOOD + later == stored(log)
    [message] = caplog.messages
    assert f"after the last record of {FIRST}.log, starting at byte {len(GOOD)}" in message


def test_indexes_are_made_again_of_batches_that_no_entry_can_describe(
    directory: Directory,
) -> None:
    hostile = refused(200, 40)
    folder_with(directory, GOOD + hostile)
    directory.remove(f"{FIRST}.index")
    folder_with(directory, next(placed([ONE], 40)), name=SECOND)
    log = opened(directory)

    assert GOOD + next(placed([ONE], 40)) == stored(log)
