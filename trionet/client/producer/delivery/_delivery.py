"""What a buffered record becomes: a Delivery, which is awaited, or asked, for the record's place.

(Kafka: FutureRecordMetadata.) It costs little, since there is one for each record; what is common
to a batch is in its :class:`.BatchOutcome`, and the metadata are made when they are looked at.
"""

# Compiled by mypyc.

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final, NamedTuple

import trio

from ...._util._raising import again
from ....errors import RecordWithdrawnError
from ._produce_request_result import BatchOutcome
from ._waiting import delivered


class RecordMetadata(NamedTuple):
    """Where a record was written.

    Attributes:
        topic: its topic.
        partition: its partition.
        offset: its offset there; -1 with ``acks=0``, when no broker tells, and where a leader only
            knows that it has the record already.
        timestamp: in milliseconds: the producer's, or the broker's where the topic has
            ``message.timestamp.type=LogAppendTime``.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int


#: Without the checks of its arguments' names, which take longer than the rest.
_tuple: Final = tuple.__new__


def withdrawn() -> RecordWithdrawnError:
    """What became of a record that was taken back."""
    return RecordWithdrawnError("the record was taken back before it was sent")


def abandon(outcome: BatchOutcome, index: int) -> None:
    """The call that gave a record was cancelled: nothing can look at its delivery."""
    outcome, position = outcome.of(outcome.position(index))
    outcome.look(position)


class Delivery:
    """A record on its way; awaiting it gives its :class:`RecordMetadata`, as often as one likes.

    Args:
        outcome: of its batch.
        index: the record's number in it.
        timestamp: the record's, in milliseconds.
    """

    __slots__ = ("index", "outcome", "timestamp")

    def __init__(self, outcome: BatchOutcome, index: int, timestamp: int) -> None:
        self.outcome = outcome
        self.index = index
        self.timestamp = timestamp

    @property
    def is_done(self) -> bool:
        """Whether it is decided what became of the record."""
        outcome = self.outcome
        if outcome.is_done or outcome.is_withdrawn(self.index):
            return True
        return outcome.parts is not None and self.pending.is_done

    @property
    def pending(self) -> BatchOutcome:
        """What is waited for: of the batch that has the record now."""
        outcome = self.outcome
        return outcome.of(outcome.position(self.index))[0]

    @property
    def error(self) -> Exception | None:
        """Why the record was not written, or why nobody knows; None if it was, or may be yet."""
        if self.outcome.is_withdrawn(self.index):
            return withdrawn()
        outcome, position = self.outcome.of(self.outcome.position(self.index))
        error = outcome.error(position)
        if error is not None:
            outcome.look(position)
        return error

    @property
    def offset(self) -> int:
        """The record's offset in its partition: that of :meth:`result`, which need not be made.

        Raises:
            trio.WouldBlock, RecordWithdrawnError, TrionetError: as there.
        """
        outcome = self.outcome
        return outcome.base_offset + self.index if outcome.is_plain else self.result().offset

    def result(self) -> RecordMetadata:
        """Where the record was written.

        Raises:
            trio.WouldBlock: that is not decided yet.
            RecordWithdrawnError: the record was taken back before it was sent.
            TrionetError: it was not written, or nobody knows whether it was.
        """
        outcome = self.outcome
        position = self.index
        if not outcome.is_plain:
            error = self.error
            if error is not None:
                # One error is raised to many: each has its own.
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

    def __await__(self) -> Generator[Any, Any, RecordMetadata]:
        return delivered(self).__await__()

    def __repr__(self) -> str:
        state = "done" if self.is_done else "under way"
        return f"<Delivery to {self.outcome.topic_partition}, {state}>"


def delivery_list(
    outcome: BatchOutcome, index: int, start: int, end: int, timestamps: int | list[int]
) -> list[Delivery]:
    """The deliveries of records that follow each other in a batch.

    Args:
        outcome: of the batch.
        index: the number of the first of them there.
        start: the number of the first of them among the timestamps.
        end: the number of the one after the last there.
        timestamps: in milliseconds; one number is every record's.
    """
    found: list[Delivery] = []
    number = start
    first = index - start
    timestamp = timestamps if isinstance(timestamps, int) else 0
    while number < end:
        if not isinstance(timestamps, int):
            timestamp = timestamps[number]
        found.append(Delivery(outcome, first + number, timestamp))
        number += 1
    return found
