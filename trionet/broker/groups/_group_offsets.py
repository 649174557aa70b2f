"""The committed offsets of the groups that a node coordinates: each change is stored, then applied.

(Kafka: OffsetMetadataManager.) Which member may commit is the group's decision; here, offsets
belong to a group id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ..storage._database import DatabaseError
from ..storage._storage_errors import commit_error
from ._committed_offsets import CommittedOffset, Partition
from ._group_store import GroupStore, put_offsets, remove_offsets


class GroupOffsets:
    """The offsets of one node's groups.

    Args:
        store: stores the offsets.
        changed: called after offsets may have changed.
    """

    def __init__(self, store: GroupStore, changed: Callable[[], None]) -> None:
        self._store = store
        self._changed = changed

    def of(self, group_id: str) -> Mapping[Partition, CommittedOffset]:
        """Return the offsets of a group by partition; empty if it has none."""
        return self._store.offsets.of(group_id)

    def is_committing(self, group_id: str) -> bool:
        """Whether the group's offsets are about to change, because a commit is being stored."""
        return bool(self._store.commits[group_id])

    def put(
        self,
        group_id: str,
        offsets: Mapping[Partition, CommittedOffset],
        done: Callable[[int], None],
    ) -> None:
        """Commit offsets; ``done`` is called with the error code when they are stored."""
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
        """Delete some offsets of a group; ``done`` is called with the error code."""
        dropped = list(partitions)

        def stored(error: DatabaseError | None) -> None:
            if error is None:
                self._store.offsets.remove(group_id, dropped)
            self._changed()
            done(commit_error(error))

        self._store.write(remove_offsets(group_id, dropped), stored)
