"""A log under hostile batches and faults, and what it must hold all the same."""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Any, TypeVar

import attrs
import trio

from support.faulty_directory import Faults, FaultyDirectory
from support.log_agreement import check_agreement, content_of
from trionet.broker.log import (
    Appended,
    Directory,
    LastShutdown,
    Log,
    LogConfig,
    MemoryDirectory,
)
from trionet.errors import ApiError
from trionet.protocol.records._batch import HEADER_SIZE, iter_batches
from trionet.protocol.records._records import EndTransactionMarker, encode_marker

T = TypeVar("T")

NOW = 5_000
COORDINATOR_EPOCH = 3
#: How many records a byte after a batch's header can stand for, by codec: written down here once
#: more, since a test that shares the code's own table would find nothing wrong with it.
RECORDS_PER_BYTE = {0: 1 / 7, 1: 1032 / 7, 2: 22 / 7, 3: 255 / 7, 4: 32768 / 7}
#: The modules of a log's code.
TRACED = ("trionet.broker.log.", "trionet._util.files._log_file")
#: Where Python itself cannot be interrupted without a descriptor left open.
APART_FROM = {
    "FolderDirectory.create",
    "LogFile.__del__",
    "LogFile.__init__",
    "_memory_file",
    # A round that is cut off where it notes its own end is one that waiters wait for.
    "Durability.release_round",
    "log_file",
}


class Injected(BaseException):
    """No exception that code knows: as Ctrl-C, or a bug, would be."""


@attrs.frozen
class Trouble:
    """What goes wrong during one call.

    Attributes:
        lines: an exception after so many lines, and after so many more of what handles it; those
            of an append count from when its batches have been checked.
        calls: the calls of the file system that fail, and how.
    """

    lines: tuple[int, ...] = ()
    calls: dict[int, str] = attrs.Factory(dict)


class Rig:
    """One log over its lives.

    Attributes:
        log: the one that is open.
        kept: the batches that it must hold, as they are stored, by their first offsets.
        steps: how many calls were made.
        interrupted: how many of them met with what was to go wrong.
        stored_late: how many failed, and were in the log after a restart.
    """

    def __init__(self, directory: Directory, config: LogConfig, start_offset: int = 0) -> None:
        self._faults = Faults()
        self._directory = FaultyDirectory(directory, self._faults)
        self._config = config
        self.kept: dict[int, bytes] = {}
        self._attempts: set[bytes] = set()
        self.steps = self.interrupted = self.stored_late = 0
        last_shutdown = LastShutdown(was_clean=True, start_offset=start_offset)
        self.log = Log(self._directory, config, now_ms=NOW, last_shutdown=last_shutdown)

    # What is done

    def append(self, records: bytes, trouble: Trouble, transaction_version: int = -1) -> bool:
        """Append; whether it was acknowledged. All of it is in the log afterwards, or nothing."""
        return self._store(
            lambda: self.log.append(records, NOW, transaction_version), records, trouble
        )

    def append_marker(
        self, producer_id: int, epoch: int, trouble: Trouble, *, is_commit: bool, version: int
    ) -> bool:
        """End a transaction; whether that was acknowledged."""
        records = encode_marker(
            EndTransactionMarker(is_commit, COORDINATOR_EPOCH),
            timestamp=NOW,
            producer_id=producer_id,
            producer_epoch=epoch,
        )

        def append() -> Appended:
            return self.log.append_marker(
                producer_id,
                epoch,
                is_commit=is_commit,
                coordinator_epoch=COORDINATOR_EPOCH,
                transaction_version=version,
                now_ms=NOW,
            )

        return self._store(append, records, trouble)

    def _store(self, append: Callable[[], Appended], records: bytes, trouble: Trouble) -> bool:
        before = self.log.end_offset
        batches = self._as_stored(records)
        try:
            appended = self._call(append, trouble, is_append=True)
        except (ApiError, Injected):
            appended = None
        if appended is not None and not appended.size:
            assert appended.size == 0
            assert self.log.end_offset == before
        elif self.log.end_offset != before:
            self.kept.update(batches)
            assert self.log.end_offset == self._end_of_kept()
        else:
            assert appended is None, "nothing was stored, and it is acknowledged"
            self._attempts.update(batches.values())
        self.check()
        if trouble != Trouble():
            self.check_after_kill()
        return appended is not None

    def delete_before(self, offset: int, trouble: Trouble) -> None:
        """Move the start of the log."""
        before = self.log.start_offset
        try:
            self._run(lambda: self.log.delete_before(offset), trouble)
        except (ApiError, Injected, OSError):
            assert self.log.start_offset in {before, max(before, offset)}
        else:
            assert self.log.start_offset == max(before, offset)
        self.check()

    def flush(self, trouble: Trouble) -> None:
        """Sync; a log that the disk refused takes nothing more, and is opened anew."""
        try:
            self._run(self.log.flush, trouble)
        except (ApiError, Injected, ValueError):
            pass
        if self.log.is_offline:
            self.kill()
        self.check()

    def begin_epoch(self) -> None:
        """Give the following records the next leader epoch."""
        self._run(lambda: self.log.begin_epoch(self.log.leader_epoch + 1), Trouble())

    def configure(self, config: LogConfig) -> None:
        """Change the topic's settings."""
        self.log.config = self._config = config

    def stop(self, trouble: Trouble) -> None:
        """Stop cleanly and start; where something goes wrong, it was no clean stop."""
        try:
            self._run(self.log.close, trouble)
        except (ApiError, Injected, OSError):
            self._open(was_clean=False)
        else:
            self._open(was_clean=True)
        self.check()

    def kill(self) -> None:
        """Start after SIGKILL: what was written is there, whether it was synced or not."""
        self._open(was_clean=False)
        self.check()

    # What must be true

    def check(self) -> None:
        """The log holds what it must, nothing else, and all that it knows agrees with that."""
        log = self.log
        for offset in [each for each in self.kept if self._last(each) < log.start_offset]:
            del self.kept[offset]
        assert b"".join(self.kept.values()) == content_of(log)
        # Where handling an exception met with another, the rest follows before the next append.
        if log._unsettled is None:
            check_agreement(log, is_torn=log._segments.active._is_torn)

    def check_after_kill(self) -> None:
        """Were the process killed now, the next start would find everything."""
        copy = MemoryDirectory(is_virtual=True)
        for name in self._directory.names():
            copy.write(name, 0, self._directory.read(name))
        log = Log(copy, self._config, now_ms=NOW, last_shutdown=self._stop(was_clean=False))
        late = self._come_late(log)
        assert b"".join([*self.kept.values(), *late.values()]) == content_of(log)
        check_agreement(log)

    def _stop(self, *, was_clean: bool) -> LastShutdown:
        log = self.log
        return LastShutdown(
            was_clean=was_clean,
            recovery_point=log.stored_recovery_point if log.directory.is_durable else 0,
            start_offset=log.start_offset,
        )

    def _open(self, *, was_clean: bool) -> None:
        last_shutdown = self._stop(was_clean=was_clean)
        self.log = Log(self._directory, self._config, now_ms=NOW, last_shutdown=last_shutdown)
        if not was_clean:
            late = self._come_late(self.log)
            self.kept.update(late)
            self.stored_late += len(late)

    def _come_late(self, log: Log) -> dict[int, bytes]:
        """What an append has written that failed may be there after a restart, where it could not
        be cut off before."""
        content = content_of(log)
        late: dict[int, bytes] = {}
        end_offset = self._end_of_kept()
        for position, header in iter_batches(content):
            if header.last_offset >= end_offset:
                data = content[position : position + header.size]
                assert data in self._attempts, f"nobody has sent {header}"
                late[header.base_offset] = data
        return late

    def _as_stored(self, records: bytes) -> dict[int, bytes]:
        """The batches with the offsets that they get if all of them are stored."""
        batches: dict[int, bytes] = {}
        offset, end = self.log.end_offset, 0
        for position, header in iter_batches(records):
            end = position + header.size
            body = records[position + HEADER_SIZE : end]
            placed = header._replace(base_offset=offset, leader_epoch=self.log.leader_epoch)
            try:
                batches[offset] = placed.pack() + body
            except struct.error:  # offsets that are none: it cannot be stored
                return {}
            offset += header.last_offset_delta + 1
        return batches

    def _end_of_kept(self) -> int:
        return self._last(next(reversed(self.kept))) + 1 if self.kept else self.log.start_offset

    def _last(self, base_offset: int) -> int:
        ((_, header),) = iter_batches(self.kept[base_offset])
        return header.last_offset

    # Trouble

    def _run(self, function: Callable[[], Any], trouble: Trouble) -> None:
        async def run() -> None:
            await function()

        self._call(lambda: trio.run(run), trouble)

    def _call(self, function: Callable[[], T], trouble: Trouble, *, is_append: bool = False) -> T:
        self.steps += 1
        with ExitStack() as stack:
            stack.enter_context(self._faults.failing(trouble.calls))
            if trouble.lines:
                stack.enter_context(self._interrupted_at(trouble.lines, is_append))
            return function()

    @contextmanager
    def _interrupted_at(self, lines: tuple[int, ...], is_append: bool) -> Iterator[None]:
        """Raise :class:`Injected` after so many lines of the log's code, and after so many more."""
        left = list(lines)

        def trace(frame: FrameType, event: str, _: Any) -> Any:
            code = frame.f_code
            if not frame.f_globals.get("__name__", "").startswith(TRACED):
                return None
            if code.co_qualname in APART_FROM:
                return None
            if event == "line" and left:
                left[0] -= 1
                if left[0] < 0:
                    del left[0]
                    self.interrupted += 1
                    raise Injected(f"{code.co_qualname}, line {frame.f_lineno}")
            return trace

        def trace_checks(frame: FrameType, event: str, _: Any) -> Any:
            if frame.f_code.co_qualname == "Log._store":
                sys.settrace(trace)
                return trace
            return None

        before = sys.gettrace()
        sys.settrace(trace_checks if is_append else trace)
        try:
            yield
        finally:
            sys.settrace(before)
