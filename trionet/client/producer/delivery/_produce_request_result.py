"""The result of a batch, shared by the deliveries of its records (Kafka: ProduceRequestResult).

The result is a separate object so that a delivery does not keep the records of the batch in memory.
It is set only once; a response that arrives after the batch has expired is ignored (KAFKA-5429).
"""

# Compiled by mypyc.

from __future__ import annotations

from collections.abc import Mapping

import trio

from ...._util._raising import again
from ....errors import TrionetError
from ..._topic_partition import TopicPartition
from ._unseen_failures import FailureCount


def maybe_written(error: Exception) -> Exception:
    """Return a copy of an error with ``may_have_been_written`` set."""
    error = again(error)
    if isinstance(error, TrionetError):
        error.may_have_been_written = True
    return error


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
        self._withdrawn: set[int] | None = None
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
            self._withdrawn = set()
        if index in self._withdrawn:
            return False
        self._withdrawn.add(index)
        return True

    @property
    def withdrawn(self) -> frozenset[int]:
        """The indexes of the withdrawn records."""
        return frozenset(self._withdrawn or ())

    def is_withdrawn(self, index: int) -> bool:
        """Return whether a record was withdrawn."""
        return self._withdrawn is not None and index in self._withdrawn

    def position(self, index: int) -> int:
        """Return a record's position: its index, not counting withdrawn records."""
        if self._withdrawn is None:
            return index
        return index - sum(each < index for each in self._withdrawn)

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
