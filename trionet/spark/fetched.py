"""What was fetched of a partition in one answer, and what can be seen of it without its records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import attrs

from ..errors import WireFormatError
from ..protocol.messages.fetch import AbortedTransaction
from ..protocol.records.batch import MAGIC, BatchHeader, Bytes, iter_batches
from ..protocol.records.message_set import MessageHeader, iter_messages

AnyHeader: TypeAlias = BatchHeader | MessageHeader


@attrs.frozen
class Fetched:
    """See the module.

    Attributes:
        records: batches, or the messages of old brokers; the last one may be cut short.
        start: the first offset that is wanted of them.
        until: the one behind the last that is wanted.
        aborted: the transactions among them that were aborted, if only what is committed is read.
    """

    records: Bytes
    start: int
    until: int
    aborted: tuple[AbortedTransaction, ...] = ()


def headers(records: Bytes) -> Iterator[tuple[int, AnyHeader]]:
    """The position and header of every whole batch, and of every message outside of batches.

    What stands behind a broken one is not looked at: the next fetch begins with that.

    Raises:
        WireFormatError: the first is broken.
    """
    found = False
    try:
        for each in _all_headers(records):
            found = True
            yield each
    except WireFormatError:
        if not found:
            raise


def _all_headers(records: Bytes) -> Iterator[tuple[int, AnyHeader]]:
    view = memoryview(records)
    pos, begun_at = 0, -1
    while pos != begun_at:  # old segments hold messages, newer ones batches
        begun_at = pos
        for start, message in iter_messages(view, pos):
            yield start, message
            pos = start + message.size
        rest = view[pos:]
        origin = pos
        for start, batch in iter_batches(rest):
            if batch.magic != MAGIC:
                break
            yield origin + start, batch
            pos = origin + start + batch.size


def bounds(records: Bytes) -> tuple[int, int]:
    """The offset that the first whole batch begins with, and the one behind the last.

    Of messages that are compressed together the first is not known: the last stands for it.

    Raises:
        WireFormatError: the first is broken, or not even that one is whole.
    """
    first = end = -1
    for _, header in headers(records):
        if isinstance(header, BatchHeader):
            begin, last = header.base_offset, header.last_offset
        else:
            begin = last = header.offset
        first = begin if first < 0 else first
        end = last + 1
    if end < 0:
        raise WireFormatError("not even one batch is whole")
    return first, end
