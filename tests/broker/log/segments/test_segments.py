"""Threads that read and tidy up while the loop goes on with a new segment."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from support.interruption import call_interrupted
from support.logs import batch, bytes_of, placed
from trionet.broker.log import FolderDirectory, LastShutdown, Log, LogConfig, LogRead

pytestmark = pytest.mark.interpreted

NOW = 5_000
ONE = batch()
CONFIG = LogConfig(segment_bytes=2 * len(ONE), index_interval_bytes=1)


def log_of_three(path: Path) -> Log:
    """Two records in a finished segment and one in the active; the next but one rolls."""
    log = Log(FolderDirectory(path), CONFIG, now_ms=NOW)
    for _ in range(3):
        log.append(ONE, NOW)
    return log


async def test_a_new_segment_is_never_taken_for_an_idle_one(tmp_path: Path) -> None:
    for lines in count():
        directory = FolderDirectory(tmp_path / str(lines))
        log = log_of_three(Path(directory.path))

        def roll(log: Log = log) -> None:
            for number in range(4):
                log.append(batch(timestamp=2000 + number), NOW)

        was_interrupted = call_interrupted(log.max_timestamp_offset, lines, roll)
        if not was_interrupted:
            break
        log.append(batch(timestamp=3000), NOW)
        newest = log.max_timestamp_offset()
        await log.close()

        last_shutdown = LastShutdown(was_clean=True, recovery_point=log.end_offset)
        again = Log(directory, CONFIG, now_ms=NOW, last_shutdown=last_shutdown)
        assert newest == again.max_timestamp_offset(), f"after {lines} lines"
    assert lines > 10


def test_a_reader_finds_its_records_while_the_log_rolls(tmp_path: Path) -> None:
    for lines in count():
        log = log_of_three(tmp_path / str(lines))
        found: list[LogRead] = []

        def read(log: Log = log, found: list[LogRead] = found) -> None:
            found.append(log.read(2, 1000, up_to=3))

        def roll(log: Log = log) -> None:
            log.append(ONE * 2, NOW)

        was_interrupted = call_interrupted(read, lines, roll)
        assert list(placed([ONE], 2)) == [bytes_of(found[0])], f"after {lines} lines"
        if not was_interrupted:
            break
    assert lines > 10
