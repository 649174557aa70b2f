"""However many segments a log has, few of them are open at a time."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from pathlib import Path

import pytest

from support.cleaned import replace
from support.logs import batch, timed_batch
from support.transactions import send
from trionet.broker.log import FolderDirectory, LastShutdown, Log, LogConfig, LogFile
from trionet.broker.log.segments._segments import OLD_SEGMENTS_LOADED_MAX
from trionet.broker.log.state._leader_epochs import LEADER_EPOCH_FILE

NOW = 5_000
SEGMENTS = 50
#: Those that are kept open for readers, the active one, and those that are being read.
OPEN_MAX = OLD_SEGMENTS_LOADED_MAX + 3


class CountingDirectory(FolderDirectory):
    """Counts the log files that are open.

    Attributes:
        most: the greatest number so far.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.files: weakref.WeakSet[LogFile] = weakref.WeakSet()
        self.most = 0

    def create(self, name: str) -> LogFile:
        return self._counted(super().create(name))

    def open(self, name: str) -> LogFile:
        return self._counted(super().open(name))

    def _counted(self, file: LogFile) -> LogFile:
        self.files.add(file)
        self.most = max(self.most, len(self.files))
        return file


@pytest.fixture
def config() -> LogConfig:
    return LogConfig(segment_bytes=2 * len(timed_batch(1)), index_interval_bytes=1)


async def fill(path: Path, config: LogConfig) -> None:
    log = Log(FolderDirectory(path), config, now_ms=NOW)
    for number in range(2 * SEGMENTS):
        log.append(timed_batch(number), NOW)
        await log.flush()
    await log.close()


def remove_epochs(path: Path) -> None:
    (path / LEADER_EPOCH_FILE).unlink()


def remove_snapshots(path: Path) -> None:
    for found in sorted(path.glob("*.snapshot"))[1:]:
        found.unlink()


def reopened(path: Path, config: LogConfig, *, was_clean: bool) -> tuple[CountingDirectory, Log]:
    directory = CountingDirectory(path)
    shutdown = LastShutdown(was_clean=was_clean)
    return directory, Log(directory, config, last_shutdown=shutdown, now_ms=NOW)


@pytest.mark.parametrize("was_clean", [True, False])
@pytest.mark.parametrize(
    "remove", [lambda _: None, remove_epochs, remove_snapshots], ids=["all", "epochs", "snapshots"]
)
async def test_opening_a_log(
    quick_disk: Path, config: LogConfig, remove: Callable[[Path], None], *, was_clean: bool
) -> None:
    """With all files, or without some of those that can be made of the batches again."""
    await fill(quick_disk, config)
    remove(quick_disk)

    directory, log = reopened(quick_disk, config, was_clean=was_clean)

    assert directory.most <= OPEN_MAX
    assert len(directory.files) <= OPEN_MAX
    assert 2 * SEGMENTS == log.end_offset
    assert 2 * SEGMENTS == log.append(batch(), NOW).first_offset


LOOK_UPS: dict[str, Callable[[Log], object]] = {
    "newest": lambda log: log.max_timestamp_offset(),
    "first as new": lambda log: log.offset_for_timestamp(SEGMENTS),
}


@pytest.mark.parametrize("look_up", LOOK_UPS.values(), ids=list(LOOK_UPS))
async def test_looking_up_a_timestamp(
    quick_disk: Path, config: LogConfig, look_up: Callable[[Log], object]
) -> None:
    await fill(quick_disk, config)
    directory, log = reopened(quick_disk, config, was_clean=True)

    assert look_up(log) is not None
    assert directory.most <= OPEN_MAX


async def test_reading_what_has_no_records_left_before_an_open_transaction(
    quick_disk: Path, config: LogConfig
) -> None:
    log = Log(FolderDirectory(quick_disk), config, now_ms=NOW)
    for _ in range(4):
        log.append(batch(), NOW)
    first_offset = log.end_offset
    for number in range(2 * SEGMENTS):
        send(log, 1 + number % 2, b"%d" % number)
    await log.flush()
    old = [each for each in log.old_segments if each.end_offset <= first_offset]
    assert await replace(log, old, lambda header: header.base_offset == 0)
    await log.close()
    directory, log = reopened(quick_disk, config, was_clean=True)

    read = log.read(first_offset - 1, 1000, up_to=log.last_stable_offset)

    assert (first_offset, 61) == (log.last_stable_offset, len(read.records))
    assert directory.most <= OPEN_MAX
