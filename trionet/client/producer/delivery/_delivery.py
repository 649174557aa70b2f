"""The delivery of a record (Kafka: FutureRecordMetadata).

Deliveries must be cheap, since every record has one. The data that all records of a batch share is
in a :class:`.ProduceRequestResult`, and a record's metadata is created on demand.
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
        offset: the offset of the record; -1 with ``acks=0``, or if the leader reports a duplicate
            without its offset.
        timestamp: the timestamp, in milliseconds since the epoch, set by the producer, or by the
            broker if the topic has ``message.timestamp.type=LogAppendTime``.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int


#: Creates a RecordMetadata without the slow keyword handling of the NamedTuple constructor.
_tuple: Final = tuple.__new__


def withdrawn() -> RecordWithdrawnError:
    """Return the error for a withdrawn record."""
    return RecordWithdrawnError("the record was withdrawn before it was sent")


def abandon(outcome: ProduceRequestResult, index: int) -> None:
    """Mark a record's failure as seen, because the call that would report it was cancelled."""
    outcome, position = outcome.of(outcome.position(index))
    outcome.mark_seen(position)


#: The argument that keeps other modules from creating deliveries.
_KEY: Final = object()


@final
class Delivery:
    """The result of sending one record; can be awaited repeatedly for its :class:`RecordMetadata`.

    Returned by :meth:`.Producer.send_nowait` and :meth:`.Producer.enqueue`.

    Attributes:
        outcome: the outcome of the record's batch.
        index: the record's index in the batch.
        timestamp: the timestamp of the record, in milliseconds.
    """

    __slots__ = ("index", "outcome", "timestamp")

    def __init__(
        self, _key: object, outcome: ProduceRequestResult, index: int, timestamp: int
    ) -> None:
        if _key is not _KEY:
            raise TypeError("deliveries are created only by a producer's methods")
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
        """The outcome of the batch that currently contains the record."""
        outcome = self.outcome
        return outcome.of(outcome.position(self.index))[0]

    @property
    def error(self) -> Exception | None:
        """The record's error; None if the record was written, or its outcome is not known yet."""
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
        """Return the position at which the record was written.

        Raises:
            trio.WouldBlock: the outcome is not known yet.
            RecordWithdrawnError: the record was withdrawn before it was sent.
            TrionetError: the record was not, or may not have been, written.
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
        """Wait for the outcome, and return the position at which the record was written.

        This is the same as awaiting the delivery.

        Raises:
            RecordWithdrawnError, TrionetError: see :meth:`result`.

        Cancellation: stops the wait; the record is still sent.
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
        start: the index of the first record in ``timestamps``.
        end: the index after the last record in ``timestamps``.
        timestamps: the timestamp of each record of the call, in milliseconds; a single number
            applies to all records.
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
