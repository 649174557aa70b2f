"""The lag of a streaming query, from its progress (the connector: offsetsBehindLatest)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Protocol

import attrs

from .._offset_limits import Offsets, from_json, from_plain


@attrs.frozen
class SourceLag:
    """The lag of one source of a query: the number of offsets that it has yet to read.

    Attributes:
        description: the source's description in the progress.
        partitions: the lag of each partition when the progress was reported.
    """

    description: str
    partitions: Offsets

    @property
    def min_offsets_behind_latest(self) -> int:
        """The lowest lag of any partition."""
        return min(self.partitions.values())

    @property
    def max_offsets_behind_latest(self) -> int:
        """The highest lag of any partition."""
        return max(self.partitions.values())

    @property
    def avg_offsets_behind_latest(self) -> float:
        """The mean lag of the partitions."""
        return sum(self.partitions.values()) / len(self.partitions)

    @property
    def total_offsets_behind_latest(self) -> int:
        """The sum of the lags of the partitions."""
        return sum(self.partitions.values())


class Progress(Protocol):
    """An object with the progress of a query as JSON, such as Spark's StreamingQueryProgress."""

    @property
    def json(self) -> str:
        """The progress, as JSON."""
        ...


def lag(progress: Progress | Mapping[str, object] | str | None) -> list[SourceLag]:
    """Return the lag of each source of a query that reads topics.

    Other sources, and sources that have not reported offsets yet, are omitted.

    Args:
        progress: ``query.lastProgress``, one of ``query.recentProgress``, the ``progress`` of a
            listener's event, or one of these as a mapping or as JSON. ``None``, the value
            before the first batch, yields an empty list.

    Raises:
        TypeError: the argument is not the progress of a query.
        ValueError: the text is not JSON.
    """
    if progress is None:
        return []
    # Spark's StreamingQueryProgress is a mapping, too; its JSON is the original from the JVM.
    text = progress if isinstance(progress, str) else getattr(progress, "json", None)
    read = json.loads(text) if isinstance(text, str) else progress
    sources = read.get("sources") if isinstance(read, Mapping) else None
    if not isinstance(sources, list):
        raise TypeError(
            "expected the progress of a streaming query, which has a list of sources; pass"
            " query.lastProgress"
        )
    return list(_lags(sources))


def _lags(sources: list[Mapping[str, object]]) -> Iterator[SourceLag]:
    for source in sources:
        end, latest = _offsets(source.get("endOffset")), _offsets(source.get("latestOffset"))
        if not latest or end is None:
            continue
        yield SourceLag(
            str(source.get("description", "")),
            # The reported ends may be older than the offsets that were read.
            {each: max(offset - end.get(each, 0), 0) for each, offset in sorted(latest.items())},
        )


def _offsets(value: object) -> Offsets | None:
    """Parse offsets; None if they are missing, or are those of another kind of source."""
    try:
        return from_json(value) if isinstance(value, str) else from_plain(value)
    except ValueError:
        return None
