"""Match acknowledgements to the records they cover, to measure their latency. Pure.

A producer acknowledges batches: a number of records of a partition. Records of a partition keep
their order, so an acknowledgement covers the oldest unacknowledged ones. It may arrive before the
call that sent the records returns their partition.
"""

from __future__ import annotations

from collections import deque

import attrs

from ._tally import Tally


@attrs.define
class _Sent:
    """Unacknowledged records of one partition that were sent by the same call."""

    records: int
    bytes: int
    began: float


@attrs.define
class _Acknowledged:
    """Acknowledged records whose call has not returned yet."""

    records: int
    at: float
    error: str


class Acknowledgements:
    """Matches sent records with acknowledgements.

    Args:
        tally: counts the matches.
    """

    def __init__(self, tally: Tally) -> None:
        self.tally = tally
        self._sent: dict[int, deque[_Sent]] = {}
        self._acknowledged: dict[int, deque[_Acknowledged]] = {}

    def sent(self, partition: int, records: int, bytes: int, began: float) -> None:
        """Record that records of a partition were sent, which were due at ``began``."""
        self._sent.setdefault(partition, deque()).append(_Sent(records, bytes, began))
        self._match(partition)

    def acknowledged(self, partition: int, records: int, at: float, error: str = "") -> None:
        """Record that the oldest records of a partition were written, or failed with an error."""
        queue = self._acknowledged.setdefault(partition, deque())
        queue.append(_Acknowledged(records, at, error))
        self._match(partition)

    @property
    def waiting(self) -> int:
        """Number of unacknowledged records."""
        return sum(each.records for sent in self._sent.values() for each in sent)

    def _match(self, partition: int) -> None:
        sent = self._sent.get(partition)
        acknowledged = self._acknowledged.get(partition)
        while sent and acknowledged:
            oldest, result = sent[0], acknowledged[0]
            records = min(oldest.records, result.records)
            size = oldest.bytes * records // oldest.records
            if result.error:
                self.tally.fail(records, result.error, result.at)
            else:
                self.tally.count(records, size, result.at)
                self.tally.took(result.at - oldest.began, records)
            oldest.records -= records
            oldest.bytes -= size
            result.records -= records
            if not oldest.records:
                sent.popleft()
            if not result.records:
                acknowledged.popleft()
