"""Limits on a micro-batch: ``maxOffsetsPerTrigger`` and ``minOffsetsPerTrigger``."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ...client._topic_partition import TopicPartition
from ._partition_offsets import Offsets


def rate_limited(
    limit: int,
    start: Mapping[TopicPartition, int],
    end: Mapping[TopicPartition, int],
    earliest: Mapping[TopicPartition, int],
) -> Offsets:
    """Return the end offsets of a micro-batch limited by ``maxOffsetsPerTrigger``.

    Each partition gets a share proportional to its lag. Shares below one offset are rounded up, so
    that no partition starves; all others are rounded down. (The connector:
    KafkaMicroBatchStream.rateLimit.)

    Args:
        limit: the approximate number of offsets in the micro-batch.
        start: the start offsets of the micro-batch.
        end: the current ends of the partitions.
        earliest: the first offsets of new partitions; a new partition that is not listed here is
            not limited.
    """
    starts = {**earliest, **start}
    sizes = {
        each: last - starts[each]
        for each, last in end.items()
        if each in starts and last > starts[each]
    }
    total = float(sum(sizes.values()))
    return {
        each: min(last, starts[each] + _share(limit, sizes[each], total)) if each in sizes else last
        for each, last in sorted(end.items())
    }


def _share(limit: int, size: int, total: float) -> int:
    share = limit * (size / total)
    return math.ceil(share) if share < 1 else math.floor(share)


class TriggerDelay:
    """Decides whether a micro-batch waits for more records (``minOffsetsPerTrigger``).

    The first micro-batch never waits.

    Args:
        min_offsets: the number of available offsets at which a micro-batch no longer waits.
        max_seconds: the maximum delay since the previous micro-batch (``maxTriggerDelay``).
    """

    def __init__(self, min_offsets: int, max_seconds: float) -> None:
        self._min_offsets = min_offsets
        self._max_seconds = max_seconds
        self._last = -math.inf

    def waits(
        self,
        start: Mapping[TopicPartition, int],
        end: Mapping[TopicPartition, int],
        earliest: Mapping[TopicPartition, int],
        now: float,
    ) -> bool:
        """Return whether the micro-batch should wait; if not, restart the delay.

        Args:
            start: the start offsets of the micro-batch.
            end: the current ends of the partitions.
            earliest: the first offsets of new partitions.
            now: the current time on a monotonic clock, in seconds.
        """
        starts = {**earliest, **start}
        waiting = sum(last - starts.get(each, 0) for each, last in end.items())
        if now - self._last < self._max_seconds and waiting < self._min_offsets:
            return True
        self._last = now
        return False
