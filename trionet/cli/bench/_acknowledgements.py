"""Which records an acknowledgement is about, and since when they waited for it.

A producer tells of batches: how many records of a partition are written. Records of a partition
stay in their order, so the oldest that wait are the ones. Some may be acknowledged before the call
that gave them comes back and tells which partition they went to. Pure.
"""

from __future__ import annotations

from collections import deque

import attrs

from ._tally import Tally


@attrs.define
class _Taken:
    """Records of one partition that were given together and are not acknowledged."""

    records: int
    bytes: int
    began: float


@attrs.define
class _Told:
    """Records that are acknowledged and were not taken yet, as far as we know."""

    records: int
    at: float
    error: str


class Acknowledgements:
    """Matches what was taken with what is acknowledged.

    Args:
        tally: counts what matches.
    """

    def __init__(self, tally: Tally) -> None:
        self.tally = tally
        self._taken: dict[int, deque[_Taken]] = {}
        self._told: dict[int, deque[_Told]] = {}

    def took(self, partition: int, records: int, bytes: int, began: float) -> None:
        """Records for a partition were taken, due at a time."""
        self._taken.setdefault(partition, deque()).append(_Taken(records, bytes, began))
        self._match(partition)

    def told(self, partition: int, records: int, at: float, error: str = "") -> None:
        """The oldest records of a partition are written; or with an error, they are not."""
        self._told.setdefault(partition, deque()).append(_Told(records, at, error))
        self._match(partition)

    @property
    def waiting(self) -> int:
        """How many records were taken and not acknowledged."""
        return sum(each.records for taken in self._taken.values() for each in taken)

    def _match(self, partition: int) -> None:
        taken = self._taken.get(partition)
        told = self._told.get(partition)
        while taken and told:
            oldest, answer = taken[0], told[0]
            records = min(oldest.records, answer.records)
            size = oldest.bytes * records // oldest.records
            if answer.error:
                self.tally.fail(records, answer.error, answer.at)
            else:
                self.tally.count(records, size, answer.at)
                self.tally.took(answer.at - oldest.began, records)
            oldest.records -= records
            oldest.bytes -= size
            answer.records -= records
            if not oldest.records:
                taken.popleft()
            if not answer.records:
                told.popleft()
