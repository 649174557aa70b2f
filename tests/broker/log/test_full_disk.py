"""A disk that is full: what did not fit leaves no trace, and the log goes on when there is room.

Two real ways to run out of room: a tiny file system (where tests may mount one), and the limit that
the kernel puts on the size of a process's files, which also makes writes short.
"""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import pytest

from support.logs import batch, placed, stored
from trionet.broker.log import FolderDirectory, LastShutdown, Log, LogConfig
from trionet.errors import ApiError
from trionet.protocol.error_codes import KAFKA_STORAGE_ERROR

NOW = 5_000
ROOM = 256 * 1024

Full = Callable[[], AbstractContextManager[None]]


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "tiny"
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "tmpfs", str(path)]
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("mounting a file system is not permitted")
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


@contextmanager
def file_size_limit() -> Iterator[None]:
    """No file may grow beyond the room; a write across the limit is cut short."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture(params=["tiny file system", "limited file size"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[FolderDirectory, Full]:
    if request.param == "limited file size":
        return FolderDirectory(tmp_path / "log"), file_size_limit
    return FolderDirectory(request.getfixturevalue("tiny_disk") / "log"), nullcontext


def fill(log: Log, full: Full, data: bytes) -> list[bytes]:
    """Append until the disk is full; what was accepted."""
    sent: list[bytes] = []

    def append_on() -> None:
        while True:
            log.append(data, NOW)
            sent.append(data)

    with pytest.raises(ApiError) as raised, full():
        append_on()
    assert KAFKA_STORAGE_ERROR == raised.value.error_code
    return sent


def test_full_disk_is_a_storage_error_and_leaves_no_trace(
    disk: tuple[FolderDirectory, Full],
) -> None:
    folder, full = disk
    log = Log(folder, now_ms=NOW)
    sent = fill(log, full, batch(1, b"x" * 30_000))
    size = sum(map(len, sent))

    assert len(sent) == log.end_offset > 5
    assert size == log.size == folder.size("00000000000000000000.log")
    assert b"".join(placed(sent)) == stored(log)
    assert not log.is_offline


def test_smaller_batch_still_fits(disk: tuple[FolderDirectory, Full]) -> None:
    folder, full = disk
    log = Log(folder, now_ms=NOW)
    sent = fill(log, full, batch(1, b"x" * 30_000))
    with full():
        log.append(batch(), NOW)

    assert b"".join(placed([*sent, batch()])) == stored(log)


def test_batches_of_one_call_are_stored_all_or_none(disk: tuple[FolderDirectory, Full]) -> None:
    folder, full = disk
    log = Log(folder, now_ms=NOW)
    call = batch(1, b"x" * 10_000) * 3
    sent = fill(log, full, call)

    assert 3 * len(sent) == log.end_offset
    assert len(call) * len(sent) == log.size == folder.size("00000000000000000000.log")


def test_producer_may_repeat_what_was_refused(disk: tuple[FolderDirectory, Full]) -> None:
    folder, full = disk
    log = Log(folder, now_ms=NOW)
    log.append(batch(producer=(7, 0, 0)), NOW)
    fill(log, full, batch(1, b"x" * 30_000))
    refused = batch(1, b"y" * 40_000, producer=(7, 0, 1))
    with pytest.raises(ApiError), full():
        log.append(refused, NOW)
    again = batch(producer=(7, 0, 1))
    with full():
        appended = log.append(again, NOW)

    assert (log.end_offset - 1, False) == (appended.first_offset, not appended.size)


async def test_log_goes_on_when_there_is_room_again(disk: tuple[FolderDirectory, Full]) -> None:
    folder, full = disk
    # Files this small never reach a limit of their size; one large one does.
    segment_bytes = 10**9 if full is file_size_limit else 70_000
    config = LogConfig(segment_bytes=segment_bytes, index_interval_bytes=100)
    log = Log(folder, config, now_ms=NOW)
    sent = fill(log, full, batch(1, b"x" * 30_000))
    await log.delete_before(4)
    more = batch(1, b"z" * 30_000)
    log.append(more, NOW)
    await log.flush()

    assert b"".join(placed([*sent, more])).endswith(stored(log))
    again = Log(folder, log.config, now_ms=NOW, last_shutdown=LastShutdown(start_offset=4))
    assert (log.end_offset, stored(log)) == (again.end_offset, stored(again))


def test_a_small_file_that_does_not_fit_is_named_in_the_error(tmp_path: Path) -> None:
    folder = FolderDirectory(tmp_path / "log")
    with pytest.raises(OSError, match="File too large") as replaced, file_size_limit():
        folder.replace("small", bytes(2 * ROOM))
    with pytest.raises(OSError, match="File too large") as written, file_size_limit():
        folder.write("small", 0, bytes(2 * ROOM))

    errors = [replaced.value.filename, written.value.filename]
    assert [str(tmp_path / "log" / name) for name in ("small.tmp", "small")] == errors


def test_new_segment_that_cannot_be_made_is_a_storage_error(folder: FolderDirectory) -> None:
    one = batch()
    log = Log(folder, LogConfig(segment_bytes=len(one)), now_ms=NOW)
    log.append(one, NOW)
    # A folder of the name that the new segment's file needs.
    folder.folder("00000000000000000001.log")
    with pytest.raises(ApiError) as raised:
        log.append(one, NOW)
    folder.remove_folder("00000000000000000001.log")

    assert KAFKA_STORAGE_ERROR == raised.value.error_code
    assert (1, len(one), 1) == (log.end_offset, log.size, len(log._segments.all))
    assert 1 == log.append(one, NOW).first_offset
    assert b"".join(placed([one, one])) == stored(log)


def test_failed_write_that_cannot_be_removed_is_removed_before_the_next(
    folder: FolderDirectory,
) -> None:
    log = Log(folder, now_ms=NOW)
    kept = fill(log, file_size_limit, batch(1, b"x" * 30_000))
    segment = log._segments.active
    # What a short write and a failed truncation leave behind.
    folder.write(segment.name("log"), segment.size, b"rest of a failed write" * 100)
    segment._is_torn = True
    log.append(batch(), NOW)

    expected = b"".join(placed([*kept, batch()]))
    assert expected == stored(log) == folder.read(segment.name("log"))
