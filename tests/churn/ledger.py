"""Which records have been processed, and whether what is committed says so of others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

Places = Iterable[tuple[int, int]]


class Ledger:
    """What members have processed, by partition.

    Attributes:
        processed: how often records were processed, those that were processed again included.
    """

    def __init__(self, partitions: int) -> None:
        self._next = dict.fromkeys(range(partitions), 0)  # everything before has been processed
        self._ahead: dict[int, set[int]] = {partition: set() for partition in range(partitions)}
        self.processed = 0

    def add(self, places: Places) -> None:
        for partition, offset in places:
            self.processed += 1
            ahead = self._ahead[partition]
            if offset >= self._next[partition]:
                ahead.add(offset)
            while self._next[partition] in ahead:
                ahead.remove(self._next[partition])
                self._next[partition] += 1

    @property
    def distinct(self) -> int:
        """How many records were processed at least once."""
        return sum(self._next.values()) + sum(map(len, self._ahead.values()))

    def has_all(self, ends: Mapping[int, int]) -> bool:
        """Whether everything before these offsets has been processed."""
        return all(self._next[partition] >= end for partition, end in ends.items())

    def skipped(self, committed: Mapping[int, int]) -> list[str]:
        """What these committed offsets pass over that nobody has processed."""
        return [
            f"partition {partition}: {offset} is committed, {self._next[partition]} never processed"
            for partition, offset in committed.items()
            if offset > self._next[partition]
        ]


class NotesReader:
    """Reads what the processes have appended to their files since it last did."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, int] = {}

    def new(self) -> list[tuple[int, int]]:
        found = []
        for path in self._folder.glob("*.notes"):
            start = self._read.get(path, 0)
            with path.open("rb") as file:
                file.seek(start)
                data = file.read()
            data = data[: data.rfind(b"\n") + 1]
            self._read[path] = start + len(data)
            for line in data.splitlines():
                partition, offset = line.split()
                found.append((int(partition), int(offset)))
        return found
