"""The result of a buffered record: a Delivery, to be awaited or queried.

(Kafka: FutureRecordMetadata.) Deliveries are cheap, since there is one for each record: data
shared by a batch is in its :class:`.ProduceRequestResult`, and metadata is created on demand.
"""

# Compiled by mypyc.

from __future__ import annotations

from collections.abc import Coroutine, Generator
from typing import Any, Final, NamedTuple, final

import trio

from ...._util._raising import again
from ....errors import RecordWithdrawnError
from ._produce_request_result import ProduceRequestResult


class RecordMetadata(NamedTuple):
    """The position at which a record was written.

    Attributes:
        topic: the topic of the record.
        partition: the number of the partition.
        offset: the offset of the record; -1 with ``acks=0``, where no broker reports it, and where
            a leader only knows that it already has the record.
        timestamp: the timestamp, in milliseconds since 1970: the producer's, or the broker's if the
            topic has ``message.timestamp.type=LogAppendTime``.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int


#: Skips the keyword handling of NamedTuple's own constructor, which takes longer than the rest.
_tuple: Final = tuple.__new__


def withdrawn() -> RecordWithdrawnError:
    """Build the error of a record that was withdrawn."""
    return RecordWithdrawnError("the record was withdrawn before it was sent")


def abandon(outcome: ProduceRequestResult, index: int) -> None:
    """Mark a record's outcome as seen: its call was cancelled, so its delivery cannot be read."""
    outcome, position = outcome.of(outcome.position(index))
    outcome.mark_seen(position)


#: Admits the deliveries of this module. Compiled code creates no instance without ``__init__``.
_KEY: Final = object()


@final
class Delivery:
    """The result of one record; can be awaited repeatedly for its :class:`RecordMetadata`.

    Returned by :meth:`.Producer.send_nowait` and :meth:`.Producer.enqueue`.

    Attributes:
        outcome: the outcome of the batch.
        index: the record's index in the batch.
        timestamp: the timestamp of the record, in milliseconds.
    """

    __slots__ = ("index", "outcome", "timestamp")

    def __init__(
        self, _key: object, outcome: ProduceRequestResult, index: int, timestamp: int
    ) -> None:
        if _key is not _KEY:
            raise TypeError("deliveries are returned by the methods of a producer")
        self.outcome: ProduceRequestResult = outcome
        self.index: int = index
        self.timestamp: int = timestamp

    @property
    def is_done(self) -> bool:
        """Whether the outcome of the record is known."""
        outcome = self.outcome
        if outcome.is_done or outcome.is_withdrawn(self.index):
            return True
        return outcome.parts is not None and self.pending.is_done

    @property
    def pending(self) -> ProduceRequestResult:
        """The outcome to wait for: that of the batch that currently has the record."""
        outcome = self.outcome
        return outcome.of(outcome.position(self.index))[0]

    @property
    def error(self) -> Exception | None:
        """Why the record was not, or may not have been, written; None if it was, or is pending."""
        if self.outcome.is_withdrawn(self.index):
            return withdrawn()
        outcome, position = self.outcome.of(self.outcome.position(self.index))
        error = outcome.error(position)
        if error is not None:
            outcome.mark_seen(position)
        return error

    @property
    def offset(self) -> int:
        """The record's offset in its partition; cheaper than :meth:`result`.

        Raises:
            trio.WouldBlock, RecordWithdrawnError, TrionetError: see :meth:`result`.
        """
        outcome = self.outcome
        return outcome.base_offset + self.index if outcome.is_plain else self.result().offset

    def result(self) -> RecordMetadata:
        """Return where the record was written.

        Raises:
            trio.WouldBlock: the outcome is not known yet.
            RecordWithdrawnError: the record was withdrawn before it was sent.
            TrionetError: the record was not written, or it is not known whether it was.
        """
        outcome = self.outcome
        position = self.index
        if not outcome.is_plain:
            error = self.error
            if error is not None:
                # Raised to many tasks: each gets a copy with a traceback of its own.
                raise again(error)
            outcome, position = outcome.of(outcome.position(position))
            if not outcome.is_done:
                raise trio.WouldBlock
        topic, partition = outcome.topic_partition
        offset = outcome.base_offset
        if offset >= 0:
            offset += position
        time = outcome.log_append_time
        place = (topic, partition, offset, self.timestamp if time < 0 else time)
        return _tuple(RecordMetadata, place)

    # A plain function that returns a coroutine: an async one in compiled code would have no
    # docstring and would not be recognised as async.
    def wait(self) -> Coroutine[Any, Any, RecordMetadata]:
        """Wait for the outcome, and return where the record was written; the same as awaiting self.

        Raises:
            RecordWithdrawnError, TrionetError: see :meth:`result`.

        Cancellation: changes nothing; the record is sent as before.
        """
        return self._wait()

    def __await__(self) -> Generator[Any, Any, RecordMetadata]:
        return self._wait().__await__()

    async def _wait(self) -> RecordMetadata:
        if self.is_done:
            await trio.lowlevel.checkpoint()
        while not self.is_done:
            await self.pending.until_changed()
        return self.result()  # noqa: ASYNC910 -- what is not done was waited for

    def __repr__(self) -> str:
        state = "done" if self.is_done else "pending"
        return f"<Delivery to {self.outcome.topic_partition}, {state}>"


def new_delivery(outcome: ProduceRequestResult, index: int, timestamp: int) -> Delivery:
    """Create the delivery of a record.

    Args:
        outcome: the outcome of the batch.
        index: the record's index in the batch.
        timestamp: the timestamp of the record, in milliseconds.
    """
    return Delivery(_KEY, outcome, index, timestamp)


def delivery_list(
    outcome: ProduceRequestResult, index: int, start: int, end: int, timestamps: int | list[int]
) -> list[Delivery]:
    """Create the deliveries of consecutive records of a batch.

    Args:
        outcome: the outcome of the batch.
        index: the index of the first record in the batch.
        start: the index of the timestamp of the first record.
        end: the index after the timestamp of the last record.
        timestamps: the timestamps, in milliseconds; a single number applies to all.
    """
    found: list[Delivery] = []
    number = start
    first = index - start
    timestamp = timestamps if isinstance(timestamps, int) else 0
    while number < end:
        if not isinstance(timestamps, int):
            timestamp = timestamps[number]
        found.append(Delivery(_KEY, outcome, first + number, timestamp))
        number += 1
    return found
