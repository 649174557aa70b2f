"""What a consumer group has promised: generations go forward, partitions have one owner each, and
committed offsets never go back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from support.ledger import Violation

GroupPartition = tuple[str, int]


class Commit(NamedTuple):
    """An OffsetCommit that is on its way."""

    generation: int
    fenced_since: int
    """The newest generation that somebody was in already when it was sent."""
    offsets: dict[GroupPartition, int]
    before: dict[GroupPartition, int]
    """What was committed for sure when it was sent."""


class GroupModel:
    """One group, as its members know it.

    Attributes:
        generation: the newest one of which a member has its assignment.
    """

    def __init__(self) -> None:
        self.generation = -1
        self._owners: dict[tuple[int, GroupPartition], str] = {}
        self._committed: dict[GroupPartition, int] = {}
        self._attempted: dict[GroupPartition, int] = {}
        self._lost: dict[GroupPartition, set[int]] = {}

    def joined(self, generation: int, since: int) -> None:
        """A JoinGroup got a response that was sent when there was generation ``since`` already."""
        if generation < since:
            raise Violation(f"generation {generation} follows {since}")

    def synced(self, generation: int, member: str, assigned: list[GroupPartition]) -> None:
        """A member has its assignment."""
        self.generation = max(self.generation, generation)
        for partition in assigned:
            owner = self._owners.setdefault((generation, partition), member)
            if owner != member:
                raise Violation(
                    f"{partition} is of {owner} and of {member} in generation {generation}"
                )

    def commits(self, generation: int, offsets: dict[GroupPartition, int]) -> Commit:
        """A member sends an OffsetCommit."""
        for partition, offset in offsets.items():
            self._attempted[partition] = max(self._attempted.get(partition, -1), offset)
        return Commit(generation, self.generation, offsets, self.known())

    def committed(self, commit: Commit) -> None:
        """It got a response without an error."""
        if commit.generation < commit.fenced_since:
            raise Violation(
                f"a commit of generation {commit.generation} was taken, when there was"
                f" {commit.fenced_since}"
            )
        for partition, offset in commit.offsets.items():
            if offset < commit.before.get(partition, -1):
                raise Violation(f"{partition}: committed {offset} after {commit.before[partition]}")
            # The response may be late, and another commit have come after this one.
            self._committed[partition] = max(offset, self._committed.get(partition, -1))

    def lost(self, commit: Commit) -> None:
        """Nobody knows what became of it: it may still come, as long as its generation lasts."""
        for partition, offset in commit.offsets.items():
            self._lost.setdefault(partition, set()).add(offset)

    def known(self) -> dict[GroupPartition, int]:
        """What is committed at least; a fetch from here on must tell no less."""
        return dict(self._committed)

    def fetched(
        self, before: Mapping[GroupPartition, int], told: Mapping[GroupPartition, int]
    ) -> None:
        """An OffsetFetch that was sent when ``before`` was known got a response."""
        for partition, offset in told.items():
            if offset < before.get(partition, -1):
                if offset not in self._lost.get(partition, ()):
                    raise Violation(f"{partition}: committed {before[partition]}, told {offset}")
                self._committed[partition] = offset
            if offset > self._attempted.get(partition, -1):
                raise Violation(f"{partition}: nobody committed {offset}")
