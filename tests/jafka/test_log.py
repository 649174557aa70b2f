"""The log of a partition on disk: segments, recovery, retention, flushing, and offsets by time."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import pytest
import trio

from support.jafka_wire import entry, messages
from support.leaks import nothing_left_behind
from support.limits import descriptor_limit, file_size_limit
from trionet.errors import TrionetError
from trionet.jafka._log import APPENDED_BYTES_MAX, PartitionLog, Segment
from trionet.net.wire._transmission import FileRange

HELLO = messages(b"hello")
SIZE = len(HELLO)


def open_log(path: Path, file_bytes_max: int = 1000, *, is_clean: bool = True) -> PartitionLog:
    return PartitionLog(str(path), file_bytes_max, is_clean=is_clean)


def content(found: FileRange | None) -> bytes | None:
    return None if found is None else found.file.read_at(found.offset, found.count)


def files(path: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in sorted(path.iterdir())}


def name(start: int) -> str:
    return f"{start:020}.jafka"


async def filled(path: Path, count: int, file_bytes_max: int = 2 * SIZE) -> PartitionLog:
    """A log of so many entries, of which three are in a segment."""
    log = open_log(path, file_bytes_max)
    for _ in range(count):
        if log.needs_flush:
            await log.flush()
        log.append([(HELLO, 1)])
    return log


def test_a_new_log_has_one_empty_segment(tmp_path: Path) -> None:
    """7: files are named by the zero-padded 20-digit start."""
    log = open_log(tmp_path)

    assert {"00000000000000000000.jafka": b""} == files(tmp_path)
    assert (0, 0, 0) == (log.start, log.end, log.size)


def test_the_file_has_the_bytes_of_the_wire(tmp_path: Path) -> None:
    """7: the content is the message set exactly as on the wire, without an index."""
    log = open_log(tmp_path)
    log.append([(HELLO, 1)])
    log.append([(memoryview(HELLO), 1)])

    assert {name(0): HELLO * 2} == files(tmp_path)
    assert HELLO == content(log.read(SIZE, 100))


async def test_a_segment_follows_the_append_that_made_the_last_too_large(tmp_path: Path) -> None:
    """7: rolled after an append leaves the segment larger than `log.file.size`."""
    await filled(tmp_path, 2)
    assert [name(0)] == list(files(tmp_path))
    await filled(tmp_path, 5)

    assert [SIZE * 3, SIZE * 3, SIZE] == [len(each) for each in files(tmp_path).values()]
    assert [name(0), name(SIZE * 3), name(SIZE * 6)] == list(files(tmp_path))


async def test_a_range_ends_with_its_segment(tmp_path: Path) -> None:
    """2.2: a fetch never crosses a segment file."""
    log = await filled(tmp_path, 5)

    assert HELLO * 3 == content(log.read(0, 1000))
    assert HELLO * 2 == content(log.read(SIZE, 1000))
    assert HELLO * 2 == content(log.read(SIZE * 3, 1000))
    assert b"" == content(log.read(SIZE * 5, 1000))
    assert log.read(SIZE * 5 + 1, 1000) is None
    assert log.read(-1, 1000) is None


async def test_a_log_is_read_again_as_it_was(tmp_path: Path) -> None:
    """4: positions keep growing across segments and restarts."""
    log = await filled(tmp_path, 5)
    log = open_log(tmp_path)
    log.append([(HELLO, 1)])

    assert (SIZE * 6, [0, SIZE * 3]) == (log.end, [each.start for each in log.segments])


async def test_bytes_that_are_missing_between_segments_are_an_error(tmp_path: Path) -> None:
    await filled(tmp_path, 5)
    os.truncate(tmp_path / name(0), SIZE)

    with pytest.raises(TrionetError, match=f"ends at {SIZE}, but the next segment starts at"):
        open_log(tmp_path, is_clean=False)


@pytest.mark.parametrize(
    "tail",
    [
        HELLO[:-1],
        HELLO[:3],
        entry(b"x", crc=1),
        entry(b"x", crc=1) + HELLO,
        bytes(100),
        b"\xff" * 100,
        entry(b"x", magic=9) + HELLO,
    ],
    ids=["torn", "3 bytes", "crc", "before a good one", "zeros", "negative", "magic"],
)
def test_recovery_truncates_at_the_first_bad_entry(tmp_path: Path, tail: bytes) -> None:
    """7: an entry that is incomplete, shorter than 6 bytes, or has a wrong CRC."""
    (tmp_path / name(0)).write_bytes(HELLO * 2 + tail)

    assert SIZE * 2 == open_log(tmp_path, is_clean=False).end
    assert {name(0): HELLO * 2} == files(tmp_path)


def test_without_recovery_nothing_is_looked_at(tmp_path: Path) -> None:
    """6: the marker file makes the next start skip recovery."""
    (tmp_path / name(0)).write_bytes(HELLO[:-1])

    assert SIZE - 1 == open_log(tmp_path).end


@pytest.mark.parametrize("kept", [SIZE * 3 - 1, SIZE * 2, 0])
async def test_recovery_looks_at_the_segment_that_was_appended_to_last(
    tmp_path: Path, kept: int
) -> None:
    """A segment without bytes may follow one that was not flushed, and lost any part of its end."""
    await filled(tmp_path, 3)
    assert [name(0), name(SIZE * 3)] == list(files(tmp_path))
    os.truncate(tmp_path / name(0), kept)
    log = open_log(tmp_path, is_clean=False)

    assert kept // SIZE * SIZE == log.end
    assert {name(0): HELLO * (kept // SIZE)} == files(tmp_path)


async def test_an_append_waits_until_the_segment_before_is_flushed(tmp_path: Path) -> None:
    log = open_log(tmp_path, 2 * SIZE)
    for _ in range(3):
        assert not log.needs_flush
        log.append([(HELLO, 1)])
    needed = log.needs_flush
    await log.flush()

    assert (True, False, 0) == (needed, log.needs_flush, log.unflushed)


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that were synced."""
    found: list[str] = []

    def sync(descriptor: int) -> None:
        found.append(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")))

    monkeypatch.setattr("trionet._util.files._log_file.sync_descriptor", sync)
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc for names of files")
async def test_the_segment_before_an_empty_one_is_flushed_after_a_kill(
    tmp_path: Path, synced: list[str]
) -> None:
    """Else, bytes in the last one would prove wrongly that it was."""
    open_log(tmp_path, 6).append([(HELLO, 1)])
    log = open_log(tmp_path, is_clean=False)
    assert ([], True) == (synced, log.needs_flush)
    await log.flush()

    assert [name(0), name(SIZE)] == synced
    assert not log.needs_flush


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc for names of files")
async def test_who_waited_for_a_flush_does_not_flush_again(
    tmp_path: Path, synced: list[str]
) -> None:
    log = open_log(tmp_path, 6)
    log.append([(HELLO, 1)])
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(log.flush)
    assert [name(0), name(SIZE)] == synced

    log.append([(HELLO, 1)])
    await log.flush()
    assert [name(SIZE), name(2 * SIZE)] == synced[2:]


def test_an_append_that_fails_leaves_nothing(tmp_path: Path) -> None:
    """A full disk cuts a write short; what was written of it is taken back."""
    log = open_log(tmp_path)
    log.append([(HELLO, 1)])
    with file_size_limit(SIZE + 5), pytest.raises(OSError, match="too large"):
        log.append([(HELLO, 1)])

    assert {name(0): HELLO} == files(tmp_path)
    log.append([(HELLO, 1)])
    assert HELLO * 2 == content(log.read(0, 100))


def test_nothing_follows_a_part_of_an_append_that_cannot_be_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would shift the position of everything after it."""
    log = open_log(tmp_path)
    log.append([(HELLO, 1)])

    def refuse(descriptor: int, size: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "ftruncate", refuse)
    torn = pytest.raises(OSError, match="ends with a part of an append, which cannot be removed")
    with file_size_limit(SIZE + 5), torn:
        log.append([(HELLO, 1)])
    with torn:
        log.append([(HELLO, 1)])
    monkeypatch.undo()

    assert {name(0): HELLO + HELLO[:5]} == files(tmp_path)
    assert HELLO == content(log.read(0, 100))
    log.append([(HELLO, 1)])
    assert {name(0): HELLO * 2} == files(tmp_path)


def test_sets_that_are_appended_together_begin_a_segment_where_each_would(tmp_path: Path) -> None:
    """The first that leaves the segment too large is its last; the rest waits for a flush."""
    log = open_log(tmp_path, 2 * SIZE)

    assert 3 == log.append([(HELLO, 1)] * 5)
    assert (3, True) == (log.unflushed, log.needs_flush)
    assert {name(0): HELLO * 3, name(3 * SIZE): b""} == files(tmp_path)


def test_sets_that_are_appended_together_fit_into_one_write(tmp_path: Path) -> None:
    log = open_log(tmp_path, 2**30)
    third = bytes(APPENDED_BYTES_MAX // 3 + 1)
    large = bytes(APPENDED_BYTES_MAX + 1)

    assert 2 == log.append([(third, 1)] * 5)
    assert 2 == log.append([(third, 1)] * 2 + [(large, 1)])
    assert 1 == log.append([(large, 1), (HELLO, 1)])
    assert [4 * len(third) + len(large)] == [len(each) for each in files(tmp_path).values()]


def remove_old(log: PartitionLog, size_max: int) -> None:
    for segment in log.old_segments(0, size_max):
        segment.remove()
        log.remove_first()


async def test_a_removed_segment_is_readable_while_it_is_sent(tmp_path: Path) -> None:
    log = await filled(tmp_path, 5)
    found = log.read(0, 1000)
    remove_old(log, SIZE)

    assert HELLO * 3 == content(found)
    assert (SIZE * 3, SIZE * 5) == (log.start, log.end)
    assert log.read(0, 10) is None
    assert [name(SIZE * 3)] == list(files(tmp_path))


async def test_when_all_is_removed_an_empty_segment_keeps_the_end(tmp_path: Path) -> None:
    """4: positions keep growing after retention has deleted old segments."""
    log = await filled(tmp_path, 5)
    remove_old(log, 0)
    assert {name(SIZE * 5): b""} == files(tmp_path)
    assert [] == log.old_segments(0, 0)

    assert SIZE * 5 == open_log(tmp_path).end


async def test_the_last_segment_stays_if_none_can_follow_it(tmp_path: Path) -> None:
    log = await filled(tmp_path, 5)
    with descriptor_limit(0):
        remove_old(log, 0)

    assert {name(SIZE * 3): HELLO * 2} == files(tmp_path)
    assert (SIZE * 3, SIZE * 5) == (log.start, log.end)


def test_a_link_to_a_file_that_cannot_be_created_stays(tmp_path: Path) -> None:
    """A segment may be linked to another disk, which is not mounted."""
    link = tmp_path / name(0)
    link.symlink_to(tmp_path / "unmounted" / name(0))
    with pytest.raises(FileNotFoundError):
        open_log(tmp_path)

    assert link.is_symlink()


def test_a_segment_closes_its_file(tmp_path: Path) -> None:
    with nothing_left_behind():
        Segment(str(tmp_path), 7)


class TestOffsets:
    """2.5, 8.3: starts of segments that are not newer than a time, newest first."""

    @pytest.fixture
    async def log(self, tmp_path: Path) -> PartitionLog:
        log = await filled(tmp_path, 5)
        for index, segment in enumerate(log.segments):
            os.utime(segment.path, (1000 + index, 1000 + index))
        return log

    @pytest.mark.parametrize(
        ("time", "count", "expected"),
        [
            (-1, 10, [SIZE * 5, SIZE * 3, 0]),
            (-1, 2, [SIZE * 5, SIZE * 3]),
            (-1, 0, []),
            (-2, 10, [0]),
            (-2, 0, []),
            (0, 10, []),
            (999_999, 10, []),
            (1_000_000, 10, [0]),
            (1_000_999, 10, [0]),
            (1_001_000, 10, [SIZE * 3, 0]),
            (1_999_999, 10, [SIZE * 3, 0]),
            (2_000_000, 10, [SIZE * 5, SIZE * 3, 0]),  # 8.3: with the newest
            (2**63 - 1, 1, [SIZE * 5]),
        ],
    )
    async def test_before(
        self, log: PartitionLog, time: int, count: int, expected: list[int]
    ) -> None:
        assert expected == log.offsets_before(time, count, now_ms=2_000_000)

    def test_the_end_of_an_empty_last_segment_is_its_start(self, tmp_path: Path) -> None:
        assert [0] == open_log(tmp_path).offsets_before(-1, 10, now_ms=0)
