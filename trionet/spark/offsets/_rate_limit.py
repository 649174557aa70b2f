"""How much of what there is goes into a micro-batch, and whether one is worth while."""

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
    """Where a micro-batch of about ``limit`` offsets ends (``maxOffsetsPerTrigger``).

    Each partition gets its share by what waits in it; below one offset it is rounded up, so that
    none starves, else down. (The connector: KafkaMicroBatchStream.rateLimit.)

    Args:
        limit: offsets in the batch.
        start: where it begins.
        end: what the cluster has.
        earliest: where new partitions begin; those without stay as in ``end``.
    """
    begins = {**earliest, **start}
    sizes = {
        each: last - begins[each]
        for each, last in end.items()
        if each in begins and last > begins[each]
    }
    total = float(sum(sizes.values()))
    return {
        each: min(last, begins[each] + _share(limit, sizes[each], total)) if each in sizes else last
        for each, last in sorted(end.items())
    }


def _share(limit: int, size: int, total: float) -> int:
    share = limit * (size / total)
    return math.ceil(share) if share < 1 else math.floor(share)


class TriggerDelay:
    """Waits until there is enough for a micro-batch, but not for ever (``minOffsetsPerTrigger``).

    The first batch never waits.

    Args:
        min_offsets: what is enough.
        max_seconds: how long a batch may be kept waiting after the one before
            (``maxTriggerDelay``).
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
        """Whether to leave it at ``start`` for this time; if not, the delay begins anew.

        Args:
            start: where the batch would begin.
            end: what the cluster has.
            earliest: where new partitions begin.
            now: in seconds, of a clock that only goes forward.
        """
        begins = {**earliest, **start}
        waiting = sum(last - begins.get(each, 0) for each, last in end.items())
        if now - self._last < self._max_seconds and waiting < self._min_offsets:
            return True
        self._last = now
        return False
