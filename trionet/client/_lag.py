"""The lag of partitions: the number of offsets from a position to the end of the log."""

from __future__ import annotations

from collections.abc import Iterable


def offset_lag(position: int | None, end_offset: int | None) -> int | None:
    """Return the lag: the number of offsets from a position to the end offset.

    It is never negative: after a truncation, or if the topic was recreated, the log may end before
    the position, and the lag is 0.

    Args:
        position: the position of a consumer, or the committed offset of a group; None if unknown.
        end_offset: the high watermark, or the last stable offset for consumers that read only
            committed records; None if unknown.

    Returns:
        The lag; None if an argument is None.
    """
    if position is None or end_offset is None:
        return None
    return max(0, end_offset - position)


def total_lag(lags: Iterable[int | None]) -> int | None:
    """Return the sum of lags, or None if one of them is unknown.

    A partial sum would make the lag look smaller while the leader of a partition is unavailable.

    Args:
        lags: the lag of each partition. As in Kafka's tools, callers omit the partitions without a
            committed offset, which have no lag.
    """
    total = 0
    for each in lags:
        if each is None:
            return None
        total += each
    return total
