"""The markers by which a replay knows what a micro-batch has committed already. Pure.

A marker is an offset that a task's transaction commits together with the task's rows: the number is
the id of the micro-batch, and the metadata says what was written. Each task has a consumer group of
its own, since two transactions that commit the same offset of a group would overwrite each other.
The task that is committed first has the group of the query instead, the *head*: no task of a
micro-batch is committed before it, so that it speaks for all of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import attrs

from ...errors import TrionetError
from ._digest import RowDigest

_VERSION: Final = 1


class ReplayError(TrionetError):
    """Raised when a micro-batch cannot be written exactly once.

    A part of it is committed, and Spark has replayed it with other rows; or the checkpoint is older
    than what was committed. Nothing of the replay is committed.
    """


@attrs.frozen
class Marker:
    """What a transaction has committed.

    Attributes:
        batch_id: the id of the micro-batch.
        partition_id: the number of the task.
        digest: the rows of the task.
        tasks: the number of tasks of the micro-batch that had rows.
        last: the number of the last of them.
        total: the rows of all its tasks.
    """

    batch_id: int
    partition_id: int
    digest: RowDigest
    tasks: int
    last: int
    total: RowDigest

    def metadata(self) -> str:
        """Return everything but the batch id as the metadata of an offset."""
        return json.dumps(
            {
                "trionet": _VERSION,
                "task": self.partition_id,
                "rows": self.digest.rows,
                "digest": f"{self.digest.hashes:016x}",
                "tasks": self.tasks,
                "last": self.last,
                "total_rows": self.total.rows,
                "total_digest": f"{self.total.hashes:016x}",
            }
        )


def parse_marker(group: str, offset: int, metadata: str) -> Marker:
    """Parse a committed offset.

    Raises:
        ReplayError: the offset is not a marker, or one of another version.
    """
    try:
        fields: Mapping[str, Any] = json.loads(metadata)
        if fields["trionet"] != _VERSION:
            raise ReplayError(
                f"the marker of group {group!r} has version {fields['trionet']!r}; this release"
                f" reads version {_VERSION}: run the query with the release that has written it"
            )
        return Marker(
            batch_id=offset,
            partition_id=int(fields["task"]),
            digest=RowDigest(int(fields["rows"]), int(fields["digest"], 16)),
            tasks=int(fields["tasks"]),
            last=int(fields["last"]),
            total=RowDigest(int(fields["total_rows"]), int(fields["total_digest"], 16)),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ReplayError(
            f"group {group!r} has an offset that is not a marker of this sink"
            f" ({metadata!r}: {error!r}); the group must be used by nothing else"
        ) from None


def wanted_markers(batch_id: int, digests: Mapping[int, RowDigest]) -> dict[int, Marker]:
    """Return the markers that a micro-batch commits.

    Args:
        batch_id: its id.
        digests: the rows of each task that has rows, by the number of the task.
    """
    total = sum(digests.values(), start=RowDigest())
    return {
        task: Marker(batch_id, task, digest, len(digests), max(digests), total)
        for task, digest in sorted(digests.items())
    }


def check_head(batch_id: int, wanted: Mapping[int, Marker], head: Marker | None) -> bool:
    """Return whether a part of the micro-batch is committed already.

    Args:
        batch_id: the id of the micro-batch.
        wanted: the markers that it is to commit.
        head: the marker of the query; None if it has committed nothing.

    Raises:
        ReplayError: a later micro-batch is committed, or this one with other rows.
    """
    if head is None or head.batch_id < batch_id:
        return False
    if head.batch_id > batch_id:
        raise ReplayError(
            f"micro-batch {batch_id} cannot be written: the topics have micro-batch"
            f" {head.batch_id} of this query already. Its checkpoint was restored from a copy, or"
            " two queries share one. Restore the newest checkpoint; or start with a new one, which"
            " makes it a new query, and with startingOffsets where this one ended"
        )
    first = min(wanted, default=None)
    check_same(wanted.get(head.partition_id), head)
    if first != head.partition_id:
        raise _differs(head, f"its first task is {first}")
    return True


def check_same(wanted: Marker | None, found: Marker) -> None:
    """Check that a task of the replay has the rows that are committed.

    Raises:
        ReplayError: the rows of the task, or of the micro-batch, differ.
    """
    if wanted is None:
        raise _differs(found, "that task has no rows")
    if wanted.digest != found.digest:
        raise _differs(found, f"that task has {wanted.digest}")
    # Markers are looked for up to the last task: rows must not move to a later one.
    if (wanted.tasks, wanted.last, wanted.total) != (found.tasks, found.last, found.total):
        raise _differs(
            found,
            f"all {wanted.tasks} tasks up to task {wanted.last} have {wanted.total} where"
            f" {found.tasks} up to task {found.last} had {found.total}",
        )


def _differs(found: Marker, how: str) -> ReplayError:
    return ReplayError(
        f"micro-batch {found.batch_id} was replayed with other rows than those that task"
        f" {found.partition_id} has committed ({found.digest}): in the replay, {how}. Nothing of"
        " the replay was committed. Exactly once needs a query that returns the same rows in the"
        " same tasks again: no random or current values, no repartition() without columns, and the"
        " same plan, shuffle partitions and minPartitions as before. Restore what has changed and"
        " start the query again, or set delivery.guarantee=at-least-once for one run, which writes"
        " the whole micro-batch again"
    )
