"""The committed offsets of the groups that a node coordinates; changes are stored, then applied.

(Kafka: OffsetMetadataManager.) :class:`.Group` checks whether a member may commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ..storage._database import DatabaseError
from ..storage._storage_errors import commit_error
from ._committed_offsets import CommittedOffset, Partition
from ._group_store import GroupStore, put_offsets, remove_offsets


class GroupOffsets:
    """The committed offsets of a node's groups.

    Args:
        store: stores the offsets.
        changed: called after a write, when offsets may have changed.
    """

    def __init__(self, store: GroupStore, changed: Callable[[], None]) -> None:
        self._store = store
        self._changed = changed

    def of(self, group_id: str) -> Mapping[Partition, CommittedOffset]:
        """Return a group's committed offsets by partition."""
        return self._store.offsets.of(group_id)

    def is_committing(self, group_id: str) -> bool:
        """Return whether a commit of the group is queued or being stored."""
        return bool(self._store.commits[group_id])

    def put(
        self,
        group_id: str,
        offsets: Mapping[Partition, CommittedOffset],
        done: Callable[[int], None],
    ) -> None:
        """Store committed offsets, and then call ``done`` with the error code."""
        commits = self._store.commits

        def stored(error: DatabaseError | None) -> None:
            commits[group_id] -= 1
            if not commits[group_id]:
                del commits[group_id]
            if error is None:
                self._store.offsets.put(group_id, offsets)
            self._changed()
            done(commit_error(error))

        commits[group_id] += 1
        self._store.write(put_offsets(group_id, offsets), stored)

    def delete(
        self, group_id: str, partitions: Iterable[Partition], done: Callable[[int], None]
    ) -> None:
        """Delete a group's offsets for the given partitions, and then call ``done``."""
        dropped = list(partitions)

        def stored(error: DatabaseError | None) -> None:
            if error is None:
                self._store.offsets.remove(group_id, dropped)
            self._changed()
            done(commit_error(error))

        self._store.write(remove_offsets(group_id, dropped), stored)
