"""What was fetched of a partition in one answer, and what can be seen of it without its records."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from ...errors import WireFormatError
from ...protocol.messages.fetch import AbortedTransaction
from ...protocol.records._batch import Bytes, batch_places, read_header
from ...protocol.records.message_sets._message_set import MessageHeader, iter_messages


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


def pieces(records: Bytes) -> Iterator[list[int] | tuple[int, MessageHeader]]:
    """Where whole batches begin that stand beside each other; or a message outside of batches.

    What stands behind a broken one is not looked at: the next fetch begins with that.

    Raises:
        WireFormatError: the first is broken.
    """
    found = False
    try:
        for each in _all_pieces(memoryview(records)):
            found = True
            yield each
    except WireFormatError:
        if not found:
            raise


def _all_pieces(view: memoryview) -> Iterator[list[int] | tuple[int, MessageHeader]]:
    pos, begun_at = 0, -1
    while pos != begun_at:  # old segments hold messages, newer ones batches
        begun_at = pos
        for start, message in iter_messages(view, pos):
            yield start, message
            pos = start + message.size
        places, pos = batch_places(view, pos)
        if places:
            yield places


def bounds(records: Bytes) -> tuple[int, int]:
    """The offset that the first whole batch begins with, and the one behind the last.

    Of messages that are compressed together the first is not known: the last stands for it.

    Raises:
        WireFormatError: the first is broken, or not even that one is whole.
    """
    first = end = -1
    for piece in pieces(records):
        if isinstance(piece, list):
            begin, last = (read_header(records, piece[at]) for at in (0, -1))
            begins, end = begin.base_offset, last.last_offset + 1
        else:
            begins = piece[1].offset
            end = begins + 1
        first = begins if first < 0 else first
    if end < 0:
        raise WireFormatError("not even one batch is whole")
    return first, end
