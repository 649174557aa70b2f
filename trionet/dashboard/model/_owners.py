"""Which partitions of a group have moved to another member."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ._rows import GroupRow

#: How long a partition counts as moved, in seconds.
MOVED_SECONDS: Final = 10.0

Key = tuple[str, int]


class Owners:
    """The members that own the partitions of a group, compared with those of before.

    A group that is rebalancing reports no owners, so its owners are those of before the rebalance
    until the new ones are known.
    """

    def __init__(self) -> None:
        self._owners: Mapping[Key, str] = {}
        self._moved: tuple[Key, ...] = ()
        self._moved_at = 0.0

    def update(self, row: GroupRow, at: float) -> tuple[Key, ...]:
        """Return the partitions that have moved recently.

        Args:
            row: the group as it was read.
            at: the time of the read, in seconds on the loop's clock.
        """
        owners = {key: member.id for member in row.detail or () for key in member.assignment}
        if owners:
            before, self._owners = self._owners, owners
            moved = tuple(key for key, id in owners.items() if before.get(key, id) != id)
            if moved:
                self._moved, self._moved_at = moved, at
        if at - self._moved_at >= MOVED_SECONDS:
            self._moved = ()
        return self._moved
