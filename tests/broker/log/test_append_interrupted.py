"""An exception at each line between "validated" and "acknowledged" leaves no half of an append.

Of the disk, of memory that runs out, of Ctrl-C: the records are all in the log afterwards or none
is, everything that the log knows agrees, and what others have stored stays readable, before and
after a restart.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar

import attrs
import pytest

from support.interruption import call_interrupted
from support.log_agreement import check_agreement
from support.logs import batch, placed, stored
from trionet.broker.log import (
    Directory,
    FolderDirectory,
    LastShutdown,
    Log,
    LogConfig,
    MemoryDirectory,
)
from trionet.broker.log.segments._segment import Segment
from trionet.errors import ApiError
from trionet.protocol.records._batch import iter_batches
from trionet.protocol.records._records import EndTransactionMarker, encode_marker

NOW = 5_000
ONE = batch()
SIZE = len(ONE)


@attrs.frozen
class Case:
    """A log, and what is appended to it in vain."""

    config: LogConfig
    before: list[bytes]
    records: bytes
    is_idempotent: bool = False
    is_marker: bool = False


def produced(sequence: int, count: int = 1, *, transactional: bool = False) -> bytes:
    return batch(
        count,
        timestamp=1000 + sequence,
        producer=(7, 0, sequence),
        transactional=transactional,
    )


#: Aborts the transaction of that producer.
MARKER = encode_marker(
    EndTransactionMarker(False, 0), timestamp=NOW, producer_id=7, producer_epoch=0
)


CASES = {
    "to an empty log": Case(LogConfig(), [], ONE),
    "with an index entry": Case(
        LogConfig(index_interval_bytes=1), [batch(3), batch(timestamp=2000)], batch(timestamp=3000)
    ),
    "of many batches": Case(
        LogConfig(index_interval_bytes=2 * SIZE),
        [ONE],
        b"".join(batch(1 + number % 3, timestamp=1000 + number) for number in range(7)),
    ),
    "that rolls": Case(
        LogConfig(segment_bytes=3 * SIZE, index_interval_bytes=1),
        [batch(timestamp=2000), batch(timestamp=3000), ONE],
        ONE,
    ),
    "of a producer": Case(
        LogConfig(),
        [produced(number) for number in range(6)],
        produced(6) + produced(7, 3),
        is_idempotent=True,
    ),
    "that rolls, of a producer": Case(
        LogConfig(segment_bytes=300),
        [produced(number) for number in range(4)],
        produced(4),
        is_idempotent=True,
    ),
    "that begins a transaction": Case(
        LogConfig(),
        [ONE, produced(0)],
        produced(1) + produced(2, transactional=True),
        is_idempotent=True,
    ),
    "that aborts a transaction": Case(
        LogConfig(index_interval_bytes=1),
        [ONE, produced(0, transactional=True), batch(2)],
        MARKER,
        is_marker=True,
    ),
    "that rolls, and aborts a transaction": Case(
        LogConfig(segment_bytes=300),
        [produced(number, transactional=True) for number in range(4)],
        MARKER,
        is_marker=True,
    ),
}
# Where Python itself cannot be interrupted without a descriptor left open.
APART_FROM = {
    "FolderDirectory.create",
    "LogFile.__del__",
    "LogFile.__init__",
    "_memory_file",
    "log_file",
}
EXCEPTIONS: dict[str, tuple[bool, Callable[[], BaseException]]] = {
    "overflow in memory": (False, lambda: OverflowError("signed integer is greater than maximum")),
    "disk": (True, lambda: OSError(errno.EIO, "Input/output error")),
    "ctrl-c": (True, KeyboardInterrupt),
}


def whole_batches(records: bytes) -> list[bytes]:
    return [records[at : at + header.size] for at, header in iter_batches(records)]


def append(log: Log, records: bytes) -> None:
    if records == MARKER:
        log.append_marker(
            7, 0, is_commit=False, coordinator_epoch=0, transaction_version=1, now_ms=NOW
        )
    else:
        log.append(records, NOW, transaction_version=1)


def interrupted_append(log: Log, records: bytes, lines: int, error: BaseException) -> bool:
    """Append, with an exception after so many lines; False: there are not so many."""

    def interrupt() -> None:
        raise error

    try:
        return call_interrupted(
            lambda: append(log, records), lines, interrupt, APART_FROM, "Log._store"
        )
    except (ApiError, type(error)):
        return True


@pytest.mark.slow
@pytest.mark.interpreted
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.parametrize(("on_disk", "exception"), EXCEPTIONS.values(), ids=EXCEPTIONS)
async def test_exception_at_each_line_leaves_all_of_an_append_or_nothing(
    case: Case, on_disk: bool, exception: Callable[[], BaseException], quick_disk: Path
) -> None:
    was_interrupted, lines = True, 0
    while was_interrupted:
        directory: Directory = MemoryDirectory(is_virtual=True)
        if on_disk:
            directory = FolderDirectory(quick_disk / str(lines))
        log = Log(directory, case.config, now_ms=NOW)
        for data in case.before:
            append(log, data)
        end_offset, before = log.end_offset, stored(log)
        was_interrupted = interrupted_append(log, case.records, lines, exception())
        lines += 1

        sent = before + b"".join(placed(whole_batches(case.records), end_offset))
        assert stored(log) in {before, sent}, lines
        check_agreement(log)
        # Who got no response sends again; of a producer with an id nothing is stored twice then.
        append(log, case.records)
        check_agreement(log)
        if case.is_marker:
            assert {} == log.open_transactions, lines
            assert log.end_offset == log.last_stable_offset, lines
        if case.is_idempotent:
            assert sent == stored(log), lines
        log.append(ONE, NOW)
        kept = stored(log)
        assert kept.startswith(sent), lines
        await log.close()
        again = Log(directory, case.config, now_ms=NOW, last_shutdown=LastShutdown(was_clean=True))
        assert kept == stored(again), lines
        check_agreement(again)
        assert log.open_transactions == again.open_transactions, lines
        found = log.aborted_transactions(0, log.end_offset)
        assert found == again.aborted_transactions(0, log.end_offset), lines


class Watched(Segment):
    """A segment whose values that readers take are recorded, and may be refused.

    Attributes:
        seen: the names and values that were set.
        refused: the name that raises instead.
    """

    __slots__ = ()
    seen: ClassVar[list[tuple[str, int]]] = []
    refused: ClassVar[str] = ""

    def __setattr__(self, name: str, value: object) -> None:
        if name == self.refused:
            raise MemoryError(name)
        super().__setattr__(name, value)
        if name in {"size", "end_offset"}:
            assert isinstance(value, int)
            self.seen.append((name, value))


@pytest.fixture
def watched() -> Iterator[Callable[[Log], type[Watched]]]:
    def watch(log: Log) -> type[Watched]:
        log._segments.all[-1].__class__ = Watched
        return Watched

    Watched.seen.clear()
    yield watch
    Watched.refused = ""


@pytest.mark.interpreted
def test_what_a_thread_may_have_seen_is_not_taken_back(
    watched: Callable[[Log], type[Watched]],
) -> None:
    # A reader takes the size first. If an undone append lowered it or the end offset, a reader
    # could have the size from before and the end offset from after.
    was_interrupted, lines = True, 0
    while was_interrupted:
        log = Log(MemoryDirectory(is_virtual=True), LogConfig(), now_ms=NOW)
        log.append(ONE, NOW)
        seen = watched(log).seen
        seen.clear()
        was_interrupted = interrupted_append(log, ONE, lines, KeyboardInterrupt())
        log.append(ONE, NOW)
        lines += 1

        for name, first in {"size": SIZE, "end_offset": 1}.items():
            values = [first, *(value for each, value in seen if each == name)]
            assert sorted(values) == values, (name, lines)
    assert lines > 10


@pytest.mark.interpreted
@pytest.mark.parametrize("name", ["end_offset", "size", "_modified_ms"])
def test_an_append_that_cannot_be_settled_at_once_is_settled_by_the_next(
    name: str, watched: Callable[[Log], type[Watched]]
) -> None:
    log = Log(MemoryDirectory(is_virtual=True), LogConfig(), now_ms=NOW)
    log.append(produced(0), NOW)
    segment = watched(log)
    segment.refused = name
    with pytest.raises(MemoryError):
        log.append(produced(1), NOW)
    segment.refused = ""
    # The producer got an error, so it sends the batch again.
    again = log.append(produced(1), NOW)

    is_stored = name != "end_offset"
    assert (is_stored, 1, 1) == (not again.size, again.first_offset, again.last_offset)
    assert 2 == log.append(produced(2), NOW).first_offset
    assert b"".join(placed([produced(number) for number in range(3)])) == stored(log)
    check_agreement(log)
