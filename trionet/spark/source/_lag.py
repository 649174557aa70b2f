"""How far a streaming query is behind, from its progress (the connector: offsetsBehindLatest)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Protocol

import attrs

from ..offsets._partition_offsets import Offsets, from_json, from_plain


@attrs.frozen
class SourceLag:
    """How many offsets one source of a query is behind the ends of its partitions.

    Attributes:
        description: the source's, from the progress.
        partitions: the offsets that wait in each, when the progress was reported.
    """

    description: str
    partitions: Offsets

    @property
    def min_offsets_behind_latest(self) -> int:
        """Of the partition that is least behind."""
        return min(self.partitions.values())

    @property
    def max_offsets_behind_latest(self) -> int:
        """Of the partition that is most behind."""
        return max(self.partitions.values())

    @property
    def avg_offsets_behind_latest(self) -> float:
        """Of all partitions."""
        return sum(self.partitions.values()) / len(self.partitions)

    @property
    def total_offsets_behind_latest(self) -> int:
        """All that waits."""
        return sum(self.partitions.values())


class Progress(Protocol):
    """Whatever has the progress of a query as JSON, such as Spark's StreamingQueryProgress."""

    @property
    def json(self) -> str:
        """The progress as Spark's own JSON."""
        ...


def lag(progress: Progress | Mapping[str, object] | str | None) -> list[SourceLag]:
    """How far each source of a query that reads topics is behind.

    Sources of other kinds, and those that have nothing to tell yet, are left out.

    Args:
        progress: ``query.lastProgress``, one of ``query.recentProgress``, the ``progress`` of a
            listener's event, or one of these as a mapping or as JSON. ``None``, before the first
            batch, gives nothing.

    Raises:
        TypeError: it is no progress.
        ValueError: it is no JSON.
    """
    if progress is None:
        return []
    # Spark's own progress is a mapping, too; its JSON is what Spark itself has written.
    text = progress if isinstance(progress, str) else getattr(progress, "json", None)
    read = json.loads(text) if isinstance(text, str) else progress
    sources = read.get("sources") if isinstance(read, Mapping) else None
    if not isinstance(sources, list):
        raise TypeError("a progress has a list of sources; give query.lastProgress")
    return list(_lags(sources))


def _lags(sources: list[Mapping[str, object]]) -> Iterator[SourceLag]:
    for source in sources:
        end, latest = _offsets(source.get("endOffset")), _offsets(source.get("latestOffset"))
        if not latest or end is None:
            continue
        yield SourceLag(
            str(source.get("description", "")),
            # What the cluster is said to have may be older than what was read.
            {each: max(offset - end.get(each, 0), 0) for each, offset in sorted(latest.items())},
        )


def _offsets(value: object) -> Offsets | None:
    """None: it is not there, or it is that of another kind of source."""
    try:
        return from_json(value) if isinstance(value, str) else from_plain(value)
    except ValueError:
        return None
