"""The undecoded records of one partition in one fetch response, and their layout."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from ...errors import WireFormatError
from ...protocol.messages.fetch import AbortedTransaction
from ...protocol.records._batch import Bytes, batch_positions, read_header
from ...protocol.records.message_sets._message_set import MessageHeader, iter_messages


@attrs.frozen
class FetchedRecords:
    """The undecoded records of a fetch response, and the offsets to read from them.

    Attributes:
        records: batches, or messages from old brokers; the last one may be truncated.
        start: the first offset to read.
        until: the offset after the last offset to read.
        aborted: the aborted transactions among the records; only with
            ``isolation.level=read_committed``.
    """

    records: Bytes
    start: int
    until: int
    aborted: tuple[AbortedTransaction, ...] = ()


def runs(records: Bytes) -> Iterator[list[int] | tuple[int, MessageHeader]]:
    """Yield the positions of each run of adjacent complete batches, or a single message.

    Iteration ends before a malformed batch or message: the next fetch starts there.

    Raises:
        WireFormatError: the first batch or message is malformed.
    """
    found = False
    try:
        for each in _all_runs(memoryview(records)):
            found = True
            yield each
    except WireFormatError:
        if not found:
            raise


def _all_runs(view: memoryview) -> Iterator[list[int] | tuple[int, MessageHeader]]:
    pos, previous = 0, -1
    while pos != previous:  # old segments contain messages, newer ones batches
        previous = pos
        for start, message in iter_messages(view, pos):
            yield start, message
            pos = start + message.size
        places, pos = batch_positions(view, pos)
        if places:
            yield places


def bounds(records: Bytes) -> tuple[int, int]:
    """Return the first offset of the complete batches, and the offset after their last one.

    The first offset of a compressed message set is unknown without decompression; its last offset
    is used instead.

    Raises:
        WireFormatError: the first batch is malformed or incomplete.
    """
    first = end = -1
    for run in runs(records):
        if isinstance(run, list):
            begin, last = (read_header(records, run[at]) for at in (0, -1))
            begins, end = begin.base_offset, last.last_offset + 1
        else:
            begins = run[1].offset
            end = begins + 1
        first = begins if first < 0 else first
    if end < 0:
        raise WireFormatError("the response contains no complete batch")
    return first, end
