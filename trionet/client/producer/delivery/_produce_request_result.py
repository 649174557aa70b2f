"""What became of the records of one batch; all their deliveries look here.

(Kafka: ProduceRequestResult.) Apart from the batch, so that whoever keeps a delivery does not keep
the records. It is decided once: an answer that comes after a batch expired changes nothing
(KAFKA-5429).
"""

# Compiled by mypyc.

from __future__ import annotations

from collections.abc import Mapping

import trio

from ...._util._raising import again
from ....errors import TrionetError
from ..._topic_partition import TopicPartition
from ._unseen_failures import UnseenFailures


def maybe_written(error: Exception) -> Exception:
    """An error like this one, of records that may be in the log all the same."""
    error = again(error)
    if isinstance(error, TrionetError):
        error.may_have_been_written = True
    return error


class BatchOutcome:
    """See the module; positions count the records that are sent.

    Args:
        topic_partition: where they go.

    Attributes:
        topic_partition: where they go.
        is_done: whether it is decided.
        base_offset: the offset of the first record; -1 where nobody tells, see
            :class:`.RecordMetadata`.
        log_append_time: in milliseconds, of all records where the broker says when; else -1.
        parts: what the batch was split into; the outcome is theirs then.
        news: for those who wait; made by the first of them.
        unseen: what its records are counted in that failed and were not looked at.
    """

    __slots__ = (
        "_error",
        "_errors",
        "_seen",
        "_withdrawn",
        "base_offset",
        "is_done",
        "log_append_time",
        "news",
        "parts",
        "topic_partition",
        "unseen",
    )

    def __init__(self, topic_partition: TopicPartition) -> None:
        self.topic_partition = topic_partition
        self.is_done = False
        self.base_offset = -1
        self.log_append_time = -1
        self.parts: list[tuple[int, BatchOutcome]] | None = None
        self.news: trio.Event | None = None
        self._error: Exception | None = None
        self._errors: Mapping[int, Exception] | None = None
        self._withdrawn: set[int] | None = None
        self._seen: set[int] | None = None
        self.unseen: UnseenFailures | None = None

    # Deciding.

    def complete(self, base_offset: int, log_append_time: int = -1) -> bool:
        """The records were written.

        Returns:
            Whether that decides it; not if it was decided before.
        """
        if self.is_done:
            return False
        self.base_offset = base_offset
        self.log_append_time = log_append_time
        self._decide()
        return True

    def fail(self, error: Exception, errors: Mapping[int, Exception] | None = None) -> bool:
        """None of the records was written, or nobody knows.

        Args:
            error: why.
            errors: of single records, by position; those that made the others fail (KIP-467).

        Returns:
            Whether that decides it; not if it was decided before.
        """
        if self.is_done:
            return False
        self._error = error
        self._errors = errors
        self._decide()
        return True

    def split(self, parts: list[tuple[int, BatchOutcome]]) -> None:
        """The outcome is that of the parts, each with the position of its first record."""
        self.parts = parts
        for position in self._seen or ():
            part, place = self.of(position)
            part.look(place)
        self._wake()

    def _decide(self) -> None:
        self.is_done = True
        self._wake()

    def _wake(self) -> None:
        if self.news is not None:
            self.news.set()
            self.news = None

    # Records that are taken back.

    def withdraw(self, index: int) -> bool:
        """Take a record back before the batch is closed; whether it was there."""
        if self._withdrawn is None:
            self._withdrawn = set()
        if index in self._withdrawn:
            return False
        self._withdrawn.add(index)
        return True

    @property
    def withdrawn(self) -> frozenset[int]:
        """The numbers of the records that were taken back."""
        return frozenset(self._withdrawn or ())

    def is_withdrawn(self, index: int) -> bool:
        """Whether a record was taken back."""
        return self._withdrawn is not None and index in self._withdrawn

    def position(self, index: int) -> int:
        """The place of a record among those that are sent."""
        if self._withdrawn is None:
            return index
        return index - sum(each < index for each in self._withdrawn)

    # Looking.

    @property
    def is_plain(self) -> bool:
        """Whether all records were written, one after the other from the base offset on."""
        return (
            self.is_done
            and self.base_offset >= 0
            and self._error is None
            and self._withdrawn is None
        )

    def of(self, position: int) -> tuple[BatchOutcome, int]:
        """The outcome of a record, and its position there; another one after a split."""
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
    def looked_at(self) -> int:
        """Of how many records no failure needs to be raised at the end of the producer's block."""
        return 0 if self._seen is None else len(self._seen)

    def look(self, position: int) -> None:
        """The failure of a record needs no raising at the end: it was seen, or its call is over."""
        if self._seen is None:
            self._seen = set()
        if position not in self._seen:
            self._seen.add(position)
            if self.unseen is not None:
                self.unseen.records -= 1

    def error(self, position: int) -> Exception | None:
        """Why a record was not written; None if it was."""
        if self._errors is not None:
            error = self._errors.get(position)
            if error is not None:
                return error
        return self._error
