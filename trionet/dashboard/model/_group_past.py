"""What is remembered of a group between reads: its lag, and who owned its partitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import attrs

from ._figures import TREND_STEP_SECONDS, TREND_STEPS_HELD, SteppedHistory

if TYPE_CHECKING:
    from ._rows import GroupRow

#: How long a partition counts as moved, in seconds.
MOVED_SECONDS: Final = 10.0

Key = tuple[str, int]


class GroupPast:
    """The past of one group.

    A group that is rebalancing reports no owners, so its owners are those of before the rebalance
    until the new ones are known.
    """

    def __init__(self) -> None:
        self._history = SteppedHistory(TREND_STEP_SECONDS, TREND_STEPS_HELD)
        self._read_at: float | None = None
        self._owners: Mapping[Key, str] = {}
        self._moved: tuple[Key, ...] = ()
        self._moved_at = 0.0

    def update(self, row: GroupRow) -> GroupRow:
        """Add the group to its past if it was read again, and return its row with the past."""
        if row.read_at is None:
            return row
        if row.read_at != self._read_at:
            self._read_at = row.read_at
            if row.lag is None:
                self._history.mark_unknown()
            else:
                self._history.add(row.read_at, row.lag)
            self._compare_owners(row, row.read_at)
        return attrs.evolve(row, history=self._history, moved=self._moved)

    def _compare_owners(self, row: GroupRow, at: float) -> None:
        owners = {key: member.id for member in row.detail or () for key in member.assignment}
        if owners:
            before, self._owners = self._owners, owners
            moved = tuple(key for key, id in owners.items() if before.get(key, id) != id)
            if moved:
                self._moved, self._moved_at = moved, at
        if at - self._moved_at >= MOVED_SECONDS:
            self._moved = ()
