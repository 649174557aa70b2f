"""What was sent, acknowledged and processed, and what a log and a group must show of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import trio

Place = tuple[int, int]
"""A partition and an offset."""


class Ledger:
    """One run. Every value is ``b"producer number"``, and numbers count up in each producer.

    Args:
        is_idempotent: without, records may be there twice and in any order.

    Attributes:
        acknowledged: values by where producers were told that they are.
        counts: how often what happened, by what it is, for people.
        wrong: what was found, in words.
        reads_committed: whether the group must not see what a transaction has aborted.
    """

    def __init__(self, *, is_idempotent: bool = True) -> None:
        self._is_idempotent = is_idempotent
        self.acknowledged: dict[Place, bytes] = {}
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.reads_committed = False
        self._aborted: set[bytes] = set()
        self._sent: set[bytes] = set()
        self._processed: dict[Place, bytes] = {}
        self._unprocessed: set[Place] = set()
        self._unplaced: list[tuple[int, bytes]] = []
        self._committed: dict[int, int] = {}
        self._news = trio.Event()

    def send(self, value: bytes) -> None:
        self._sent.add(value)

    def acknowledge(self, place: Place, value: bytes) -> None:
        """A producer was told where a record is; -1: it is there, and nobody knows where."""
        if place[1] < 0:
            self.counts["acknowledged without an offset"] += 1
            self._unplaced.append((place[0], value))
            return
        before = self.acknowledged.setdefault(place, value)
        if place not in self._processed:
            self._unprocessed.add(place)
        if before != value:
            self.wrong.append(f"{place} was given to {before!r} and {value!r}")

    def abort(self, values: Iterable[bytes]) -> None:
        """The transaction of these values was aborted."""
        self._aborted.update(values)
        self.counts["transactions aborted"] += 1

    def process(self, place: Place, value: bytes) -> None:
        """A member of the group has finished with a record; it may be again."""
        self.counts["times processed"] += 1
        before = self._processed.setdefault(place, value)
        self._unprocessed.discard(place)
        if before != value:
            self.wrong.append(f"{place} was read as {before!r} and {value!r}")
        if value not in self._sent:
            self.wrong.append(f"nobody sent {value!r}, read at {place}")
        self._news.set()

    def committed(self, offsets: Mapping[int, int]) -> None:
        """The group says, by partition, before which offset it is done."""
        for partition, offset in offsets.items():
            last = self._committed.get(partition, 0)
            if offset < last:
                self.wrong.append(f"partition {partition}: committed {offset} after {last}")
            self._committed[partition] = offset
        for place in self._unprocessed:
            if place[1] < offsets.get(place[0], 0):
                self.wrong.append(f"{place} is committed, and nobody has processed it")

    def ends(self) -> dict[int, int]:
        """By partition, the offset after everything that is acknowledged so far."""
        ends: dict[int, int] = {}
        for partition, offset in self.acknowledged:
            ends[partition] = max(ends.get(partition, 0), offset + 1)
        return ends

    def ended(self, before: Mapping[int, int], told: Mapping[int, int]) -> None:
        """Compare with the ends of the log that a broker tells, asked after `before` was taken."""
        for partition, end in before.items():
            if told.get(partition, 0) < end:
                self.wrong.append(
                    f"partition {partition} ends at {told.get(partition)}, acknowledged up to {end}"
                )

    @property
    def unprocessed(self) -> int:
        """How many acknowledged records nobody in the group has processed."""
        return len(self._unprocessed)

    async def until_all_are_processed(self) -> None:
        """Wait for the group, which must have come together again."""
        while self._unprocessed:
            self._news = trio.Event()
            await self._news.wait()

    def check(self, found: Iterable[tuple[int, int, bytes]]) -> None:
        """Compare with the log itself: partitions, offsets and values, in the order of offsets."""
        logged: dict[Place, bytes] = {}
        newest: dict[tuple[int, bytes], int] = {}
        for partition, offset, value in found:
            logged[partition, offset] = value
            producer, _, number = value.partition(b" ")
            last = newest.get((partition, producer), -1)
            if int(number) <= last and self._is_idempotent:
                self.wrong.append(f"partition {partition}: {value!r} comes behind {last}")
            newest[partition, producer] = int(number)
        for place, value in self.acknowledged.items():
            if logged.get(place) != value:
                self.wrong.append(f"{place}: acknowledged {value!r}, found {logged.get(place)!r}")
        for place, value in self._processed.items():
            if logged.get(place) != value:
                self.wrong.append(f"{place}: processed {value!r}, found {logged.get(place)!r}")
        there = {(partition, value) for (partition, _), value in logged.items()}
        for partition, value in self._unplaced:
            if (partition, value) not in there:
                self.wrong.append(f"partition {partition}: acknowledged {value!r} is not there")
        if self.reads_committed and (seen := self._aborted & set(self._processed.values())):
            self.wrong.append(f"{len(seen)} aborted records are processed, such as {min(seen)!r}")
        if committed := self._aborted & set(self.acknowledged.values()):
            self.wrong.append(f"{len(committed)} aborted records are acknowledged")
        counts = Counter(logged.values())
        twice = [value for value, count in counts.items() if count > 1]
        if twice and self._is_idempotent:
            self.wrong.append(f"{len(twice)} records are there twice, such as {twice[0]!r}")
        unknown = counts.keys() - self._sent
        if unknown:
            self.wrong.append(f"nobody sent {len(unknown)} records, such as {min(unknown)!r}")
