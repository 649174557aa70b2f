"""The result of a batch, and the deliveries of its records, which share it.

(Kafka: ProduceRequestResult, FutureRecordMetadata.) Deliveries must be cheap, since every record
has one, so a record's metadata is created on demand. The result is a separate object so that a
delivery does not keep the records of the batch in memory. It is set only once; a response that
arrives after the batch has expired is ignored (KAFKA-5429).
"""

# Compiled by mypyc.

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Coroutine, Generator, Mapping
from typing import Any, Final, NamedTuple, final

import trio

from ..._util._raising import again
from ...errors import RecordWithdrawnError, TrionetError
from .._topic_partition import TopicPartition


def maybe_written(error: Exception) -> Exception:
    """Return a copy of an error with ``may_have_been_written`` set."""
    error = again(error)
    if isinstance(error, TrionetError):
        error.may_have_been_written = True
    return error


class FailureCount:
    """The number of records of one partition that failed with the same kind of error.

    Args:
        error: the error of the first of these records.

    Attributes:
        error: the error of the first of these records.
        records: the number of records whose deliveries have not been read.
    """

    __slots__ = ("error", "records")

    def __init__(self, error: Exception) -> None:
        self.error: Exception = error
        self.records: int = 0


class ProduceRequestResult:
    """The result of one batch.

    An *index* counts all records appended to the batch; a *position* skips withdrawn records.

    Args:
        topic_partition: the destination of the batch.

    Attributes:
        topic_partition: the destination of the batch.
        is_done: whether the result is known.
        base_offset: the offset of the first record; -1 if not reported, see
            :class:`.RecordMetadata`.
        log_append_time: the timestamp of all records, in milliseconds, if the broker sets it;
            otherwise -1.
        parts: after a split, the position of the first record and the result of each new batch.
        changed: an event set when the result becomes known or the batch is split; created by the
            first waiting task.
        unseen: the counter of failed records whose deliveries have not been read; None if these
            records are not counted.
    """

    __slots__ = (
        "_error",
        "_errors",
        "_seen",
        "_withdrawn",
        "base_offset",
        "changed",
        "is_done",
        "log_append_time",
        "parts",
        "topic_partition",
        "unseen",
    )

    def __init__(self, topic_partition: TopicPartition) -> None:
        self.topic_partition: TopicPartition = topic_partition
        self.is_done: bool = False
        self.base_offset: int = -1
        self.log_append_time: int = -1
        self.parts: list[tuple[int, ProduceRequestResult]] | None = None
        self.changed: trio.Event | None = None
        self._error: Exception | None = None
        self._errors: Mapping[int, Exception] | None = None
        self._withdrawn: list[int] | None = None  # sorted
        self._seen: set[int] | None = None
        self.unseen: FailureCount | None = None

    # Completion.

    def complete(self, base_offset: int, log_append_time: int = -1) -> bool:
        """Set the outcome of a batch that was written.

        Returns:
            Whether this call set the outcome; False if the outcome was already set.
        """
        if self.is_done:
            return False
        self.base_offset = base_offset
        self.log_append_time = log_append_time
        self._decide()
        return True

    def fail(self, error: Exception, errors: Mapping[int, Exception] | None = None) -> bool:
        """Set the outcome of a batch that was not, or may not have been, written.

        Args:
            error: the error of all records without an entry in ``errors``.
            errors: the errors of individually rejected records, by position (KIP-467).

        Returns:
            Whether this call set the outcome; False if the outcome was already set.
        """
        if self.is_done:
            return False
        self._error = error
        self._errors = errors
        self._decide()
        return True

    def split(self, parts: list[tuple[int, ProduceRequestResult]]) -> None:
        """Replace this result with the results of the smaller batches, after a split.

        Args:
            parts: the position of the first record and the result of each new batch.
        """
        self.parts = parts
        for position in self._seen or ():
            part, place = self.of(position)
            part.mark_seen(place)
        self._wake()

    def _decide(self) -> None:
        self.is_done = True
        self._wake()

    def _wake(self) -> None:
        if self.changed is not None:
            self.changed.set()
            self.changed = None

    # Waiting.

    async def until_done(self) -> None:  # noqa: ASYNC910 -- what is not done is waited for
        """Wait until the outcomes of all records are known, including all parts after a split.

        Cancellation: stops the wait.
        """
        if self.is_done:
            await trio.lowlevel.checkpoint()
        while not self.is_done:
            if self.parts is None:
                await self.until_changed()
                continue
            for _, part in self.parts:
                await part.until_done()
            return  # noqa: ASYNC910 -- as above

    async def until_changed(self) -> None:
        """Wait until the outcome is known, or the batch is split."""
        if self.changed is None:
            self.changed = trio.Event()
        await self.changed.wait()

    # Withdrawn records.

    def withdraw(self, index: int) -> bool:
        """Withdraw a record before the batch is drained. Returns False if already withdrawn."""
        if self._withdrawn is None:
            self._withdrawn = []
        if self.is_withdrawn(index):
            return False
        insort(self._withdrawn, index)
        return True

    @property
    def withdrawn(self) -> frozenset[int]:
        """The indexes of the withdrawn records."""
        return frozenset(self._withdrawn or ())

    def is_withdrawn(self, index: int) -> bool:
        """Return whether a record was withdrawn."""
        withdrawn = self._withdrawn
        if withdrawn is None:
            return False
        place = bisect_left(withdrawn, index)
        return place < len(withdrawn) and withdrawn[place] == index

    def position(self, index: int) -> int:
        """Return a record's position: its index, not counting withdrawn records."""
        if self._withdrawn is None:
            return index
        return index - bisect_left(self._withdrawn, index)

    # Reading.

    @property
    def is_plain(self) -> bool:
        """Whether all appended records were written at consecutive offsets from ``base_offset``."""
        return (
            self.is_done
            and self.base_offset >= 0
            and self._error is None
            and self._withdrawn is None
        )

    def of(self, position: int) -> tuple[ProduceRequestResult, int]:
        """Return the result for a record and the record's position in it, following splits."""
        outcome = self
        while outcome.parts is not None:
            first = 0
            for start, part in outcome.parts:
                if start > position:
                    break
                first, outcome = start, part
            position -= first
        return outcome, position

    @property
    def seen_count(self) -> int:
        """The number of records whose failure has been seen."""
        return 0 if self._seen is None else len(self._seen)

    def mark_seen(self, position: int) -> None:
        """Mark a record's failure as seen, so that it is not raised when the block exits."""
        if self._seen is None:
            self._seen = set()
        if position not in self._seen:
            self._seen.add(position)
            if self.unseen is not None:
                self.unseen.records -= 1

    def error(self, position: int) -> Exception | None:
        """Return the error of a record; None if it was written, or the outcome is not known yet."""
        if self._errors is not None:
            error = self._errors.get(position)
            if error is not None:
                return error
        return self._error


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
