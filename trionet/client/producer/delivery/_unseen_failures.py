"""Failed records whose deliveries were never read, which raise an error when the block exits.

Only counters are kept, not batches or results, so that the memory of a long-running producer does
not grow. The result of a batch refers to the counter for its records. Reading a delivery decrements
the counter.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from ....errors import ApiError, TrionetError, UndeliveredError
from ..._topic_partition import TopicPartition
from ._delivery import FailureCount

#: The maximum number of counters; all further failures share one counter.
KINDS_MAX: Final = 100

#: The class of an error, Kafka's error code, and whether the records may have been written.
_Kind: TypeAlias = tuple[type[Exception], int, bool]


class UnseenFailures:
    """Counts the unseen failures of one producer."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[TopicPartition, _Kind], FailureCount] = {}
        self._rest: FailureCount | None = None

    def add(self, partition: TopicPartition, error: Exception, records: int) -> FailureCount:
        """Count the records of a failed batch, and return the counter for its result."""
        key = partition, _kind(error)
        found = self._kinds.get(key)
        if found is None or not found.records:
            if len(self._kinds) >= KINDS_MAX:
                self._kinds = {kind: each for kind, each in self._kinds.items() if each.records}
            found = FailureCount(error)
            if len(self._kinds) < KINDS_MAX:
                self._kinds[key] = found
            else:
                found = self._rest = self._rest or found
        found.records += records
        return found

    def error(self, raised: Exception | None = None) -> UndeliveredError | None:
        """Return the error to raise when the block exits; None if every failure has been seen.

        Args:
            raised: the fatal error of the producer, if a call has raised it; records that failed
                with this error are not reported again.
        """
        failures = [
            (partition.topic, partition.partition, each.records, each.error)
            for (partition, _), each in self._kinds.items()
            if each.records and not _is_same(each.error, raised)
        ]
        records = sum(count for _, _, count, _ in failures)
        if self._rest is not None:
            records += self._rest.records
        return UndeliveredError(failures, records) if records else None


def _kind(error: Exception) -> _Kind:
    if isinstance(error, ApiError):
        return ApiError, error.error_code, error.may_have_been_written
    return type(error), 0, isinstance(error, TrionetError) and error.may_have_been_written


def _is_same(error: Exception, other: Exception | None) -> bool:
    """Return whether two errors are equal in class and arguments, as an error and its copy are."""
    return other is not None and (type(error), error.args) == (type(other), other.args)
