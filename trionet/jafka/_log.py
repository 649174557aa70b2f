"""The log of one partition, in Jafka's format on disk.

A partition is a folder of segments. A segment is a file that holds entries exactly as they are on
the wire, and is named by the position of its first byte. There is no index: the offset of an entry
is its position.

An append goes to the page cache, and its bytes can be read at once. (Jafka shows them only once
they are flushed, which no client can rely on.) A flush makes everything that was appended before it
survive a power failure. A killed process loses nothing but an append that it was in the middle of.
"""

# Compiled by mypyc.

from __future__ import annotations

import mmap
import os
import re
from bisect import bisect_right
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from operator import attrgetter
from typing import Final

import trio

from .._util._logging import get_logger
from .._util._raising import raise_from
from .._util.files._descriptors import sync_folder
from .._util.files._log_file import LogFile, open_log_file
from ..errors import TrionetError
from ..net.wire._transmission import FileRange
from ._codec import EARLIEST, LATEST, valid_bytes
from ._requests import Bytes

logger = get_logger("trionet.jafka")

SUFFIX: Final = ".jafka"
_NAME: Final = rf"([0-9]{{20}}){SUFFIX}"
_start: Final = attrgetter("start")
#: What one append writes at most, unless it is a single set.
APPENDED_BYTES_MAX: Final = 256 * 1024


class Segment:
    """A file of a log, which stays readable while a range of it is being sent.

    Args:
        folder: the path of the partition.
        start: the position of the file's first byte.

    Attributes:
        file: the open file.
        size: how many bytes the file has.
        has_new_name: whether the file may have been created after the last flush.

    Raises:
        OSError: the file cannot be opened or created.
    """

    __slots__ = ("_is_torn", "file", "has_new_name", "path", "size", "start")

    def __init__(self, folder: str, start: int) -> None:
        self.path: str = os.path.join(folder, f"{start:020}{SUFFIX}")
        self.start: int = start
        self._is_torn: bool = False
        # A dangling symlink counts as existing, so that it is not removed below.
        self.has_new_name: bool = not os.path.lexists(self.path)
        try:
            self.file: LogFile = open_log_file(self.path, os.O_RDWR | os.O_CREAT)
        except OSError:
            if self.has_new_name:  # at the next start, it would be a part of the log
                with suppress(OSError):
                    os.unlink(self.path)
            raise
        self.size: int = self.file.size()

    @property
    def end(self) -> int:
        return self.start + self.size

    @property
    def modified_ms(self) -> int:
        return os.fstat(self.file.fileno()).st_mtime_ns // 1_000_000

    def append(self, data: Bytes) -> None:
        """Append to the page cache.

        Raises:
            OSError: nothing was appended.
        """
        self.remove_torn_end()
        try:
            self.file.write_all(self.size, data)
        except OSError:
            self._is_torn = True
            self.remove_torn_end()
            raise
        self.size += len(data)

    def remove_torn_end(self) -> None:
        """Remove what a failed append has left behind the end, if anything.

        Raises:
            OSError: it is still there, so that nothing can be appended, and the file needs recovery
                if it is closed.
        """
        if not self._is_torn:
            return
        try:
            self.file.truncate(self.size)
        except OSError as error:
            text = f"{self.path} ends with a part of an append, which cannot be removed: {error}"
            raise_from(OSError(error.errno, text), error)
        self._is_torn = False

    def remove(self) -> None:
        """Remove the file, which stays readable while it is open, also from the disk. Blocks.

        A power failure then leaves no gap among the segments that are removed one by one.

        Raises:
            OSError: it cannot be removed, or may be there again after a power failure.
        """
        with suppress(FileNotFoundError):
            os.unlink(self.path)
            sync_folder(os.path.dirname(self.path))

    def recover(self) -> None:
        """Truncate at the first entry that is incomplete or invalid. Blocks."""
        size = self.size
        if size:
            with mmap.mmap(self.file.fileno(), size, access=mmap.ACCESS_READ) as content:
                self.size = valid_bytes(content)
        if self.size < size:
            logger.warning("%s: removed an incomplete end, %d bytes", self.path, size - self.size)
            self.file.truncate(self.size)


class PartitionLog:
    """The segments of a partition. All methods are for the loop, except where they say otherwise.

    Args:
        folder: the path of the partition, which exists.
        file_bytes_max: the size that a segment must exceed for the next one to begin.
        is_clean: whether the log was closed in order; otherwise its end is checked and truncated.

    Raises:
        TrionetError: bytes are missing between two segments.
        OSError: a file cannot be read.

    Attributes:
        unflushed: how many messages were appended since the last flush began.
        flushed_at: when that was, in seconds on the loop's clock.
    """

    def __init__(self, folder: str, file_bytes_max: int, *, is_clean: bool) -> None:
        self.folder = folder
        self._file_bytes_max = file_bytes_max
        names = (re.fullmatch(_NAME, name) for name in os.listdir(folder))
        starts = sorted(int(found[1]) for found in names if found is not None)
        self.segments: list[Segment] = [Segment(folder, start) for start in starts or [0]]
        if not is_clean:
            self._recover()
        for segment, following in zip(self.segments, self.segments[1:], strict=False):
            if segment.end != following.start:
                raise TrionetError(
                    f"{segment.path} ends at {segment.end}, but the next segment starts at"
                    f" {following.start}; restore what is between, or move the later files away"
                )
        # The one before an empty one may not have been flushed when the process died.
        is_flushed = is_clean or self.segments[-1].size
        self._dirty: list[Segment] = self.segments[-1:] if is_flushed else self.segments[-2:]
        for each in self._dirty:
            each.has_new_name = each.has_new_name or not is_clean
        self._flushed_end: int = -1
        self.unflushed: int = 0
        self.flushed_at: float = 0.0
        self._flushing = trio.Lock()

    def _recover(self) -> None:
        # Bytes in the last segment prove that those before it had been flushed; see `append`.
        if not self.segments[-1].size and len(self.segments) > 1:
            self.segments[-2].recover()
            # After a power failure, it may also end after a whole entry, or be empty.
            if self.segments[-2].end < self.segments[-1].start:
                os.unlink(self.segments.pop().path)
        self.segments[-1].recover()

    @property
    def start(self) -> int:
        """The position of the first byte that is still there."""
        return self.segments[0].start

    @property
    def end(self) -> int:
        """The position after the last byte."""
        return self.segments[-1].end

    @property
    def size(self) -> int:
        """How many bytes there are."""
        return self.end - self.start

    @property
    def needs_flush(self) -> bool:
        """Whether the next append has to wait for a flush; see :meth:`append`."""
        return len(self._dirty) > 1

    def append(self, sets: Sequence[tuple[Bytes, int]]) -> int:
        """Append message sets, and begin a new segment if they leave this one too large.

        Call it only unless :attr:`needs_flush`: after a crash only the segment that was
        appended to last is checked, so those before it must have been flushed.

        Args:
            sets: complete entries, and how many messages they contain; at least one set.

        Returns:
            How many of the sets were appended: as many as belong to this segment, or fit into one
            write.

        Raises:
            OSError: nothing was appended.
        """
        segment = self.segments[-1]
        count, size = 1, len(sets[0][0])
        for each, _ in islice(sets, 1, None):
            is_full = size > self._file_bytes_max - segment.size
            if is_full or size + len(each) > APPENDED_BYTES_MAX:
                break
            size += len(each)
            count += 1
        # One write for all: it takes longer than to check a small set.
        segment.append(sets[0][0] if count == 1 else b"".join([each for each, _ in sets[:count]]))
        self.unflushed += sum([messages for _, messages in sets[:count]])
        if segment.size > self._file_bytes_max:
            self._roll()
        return count

    def _roll(self) -> bool:
        """Begin a segment, and return whether that was possible; the next caller tries again."""
        try:
            following = Segment(self.folder, self.end)
        except OSError as error:
            logger.warning("cannot begin a segment in %s: %s", self.folder, error)
            return False
        self.segments.append(following)
        self._dirty.append(following)
        return True

    def read(self, offset: int, bytes_max: int) -> FileRange | None:
        """Return a range of one segment, which may end within an entry and may be empty.

        Args:
            offset: the position at which the range begins.
            bytes_max: the maximum size of the range, 0 or more.

        Returns:
            The range; None if the offset is out of range.
        """
        if not self.start <= offset <= self.end:
            return None
        segment = self.segments[bisect_right(self.segments, offset, key=_start) - 1]
        position = offset - segment.start
        return FileRange(segment.file, position, min(bytes_max, segment.size - position))

    def offsets_before(self, time: int, count_max: int, now_ms: int) -> list[int]:
        """Return the starts of segments, and the end of the log, before a time, newest first.

        Args:
            time: milliseconds since the epoch, compared with when the files were modified; or
                LATEST or EARLIEST.
            count_max: how many offsets to return at most.
            now_ms: the current time, in the same unit.
        """
        found = [(each.start, each.modified_ms) for each in self.segments]
        if self.segments[-1].size:
            found.append((self.end, now_ms))
        if time == EARLIEST:
            found = found[:1]
        elif time != LATEST:
            while found and found[-1][1] > time:
                found.pop()
        return [offset for offset, _ in reversed(found)][:count_max]

    async def flush(self) -> None:
        """Wait until everything that was appended before is on disk.

        Cancellation: does not interrupt a flush that has begun.

        Raises:
            OSError: what is on disk is unknown.
        """
        async with self._flushing:
            segments, end = tuple(self._dirty), self.end
            if end == self._flushed_end and len(segments) == 1:
                return  # the flush that this has waited for did it all
            messages, self.unflushed = self.unflushed, 0
            self.flushed_at = trio.current_time()
            try:
                await trio.to_thread.run_sync(self.sync, segments)
            except BaseException:
                self.unflushed += messages
                raise
            self._flushed_end = end
            self._dirty = [each for each in self._dirty if each not in segments[:-1]]

    def sync(self, segments: Sequence[Segment] | None = None) -> None:
        """Flush some segments, by default all that need it. Blocks; call it in a thread."""
        segments = self._dirty if segments is None else segments
        for segment in segments:
            segment.file.sync()
        if any(segment.has_new_name for segment in segments):
            with suppress(FileNotFoundError):  # the topic was deleted
                sync_folder(self.folder)
            for segment in segments:
                segment.has_new_name = False

    def old_segments(self, oldest_ms: int, size_max: int) -> list[Segment]:
        """Return the first segments, which exceed the limit of age or size.

        If that is all of them, begin an empty one first, so that the end of the log stays where it
        is; if that fails, leave the last one out.

        Args:
            oldest_ms: a segment last modified before this time is too old.
            size_max: as much as this stays, or more; -1 for everything.
        """
        count = 0
        for each in self.segments:
            if each.modified_ms >= oldest_ms and not 0 <= size_max <= self.end - each.end:
                break
            count += 1
        # A new one would have the name of an empty one.
        if count == len(self.segments) and not (self.segments[-1].size and self._roll()):
            count -= 1
        return self.segments[:count]

    def remove_first(self) -> None:
        """Take the first segment, whose file was removed, off the log."""
        removed = self.segments.pop(0)
        self._dirty = [each for each in self._dirty if each is not removed]
