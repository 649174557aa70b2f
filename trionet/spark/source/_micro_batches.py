"""Where the micro-batches of one run of a query begin and end, and what each reads.

(The connector: KafkaMicroBatchStream.) Spark keeps in its checkpoint where micro-batches end, and
not where the first one begins; so the first one of a new query is empty, and its end is the begin.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

import trio

from ...client._topic_partition import TopicPartition
from ..offsets._errors import DataLossError
from ..offsets._partition_offsets import LATEST, Offsets
from ..offsets._planning import stream_plan, verify_available_now
from ..offsets._ranges import OffsetRange
from ..offsets._rate_limit import TriggerDelay, rate_limited
from ..options._options import SourceOptions
from ._offset_reader import OffsetReader

logger = logging.getLogger("trionet.spark")

#: Spark asks some fifty times a second whether there is something new; the cluster is not asked as
#: often as that.
ASK_SECONDS_MIN: Final = 0.05

#: Ours was empty. The connector's was not, and where it began it keeps in a file of its own, which
#: a source in Python cannot find: it is not told where the checkpoint is.
_BEGIN_UNKNOWN: Final = (
    "the first micro-batch of this query is repeated as an empty one, since startingOffsets is"
    " latest; if Spark's Kafka connector began the query, stop it and set startingOffsets to what"
    " stands in the last line of sources/0/0 in the checkpoint"
)


class MicroBatches:
    """One run of a query.

    Args:
        options: of the source.
        reader: asks the cluster.
    """

    def __init__(self, options: SourceOptions, reader: OffsetReader) -> None:
        self._options = options
        self._reader = reader
        self._begin: Offsets | None = None
        self._begin_is_of_now = False
        # Where a run of Trigger.AvailableNow ends.
        self._last_end: Offsets | None = None
        self._ends: Offsets | None = None
        self._asked_at = float("-inf")
        self._has_planned = False
        least = options.min_offsets_per_trigger
        self._delay = (
            None if least is None else TriggerDelay(least, options.max_trigger_delay_seconds)
        )

    @property
    def ends(self) -> Offsets | None:
        """What the cluster had when it was asked last."""
        return self._ends

    async def fix_end(self) -> None:
        """The run is to end where the cluster ends now (``Trigger.AvailableNow``).

        Raises:
            TrionetError: the cluster could not be asked.
        """
        self._last_end = self._ends = await self._latest_of_all()

    async def begin(self) -> Offsets:
        """Where a new query begins; the same however often it is asked for.

        Raises:
            OffsetsMismatchError: there are offsets or times for other partitions than the query
                reads, or no record is as late as the time it is to begin at.
            TrionetError: the cluster could not be asked.
        """
        if self._begin is not None:
            await trio.lowlevel.checkpoint()
            return self._begin
        partitions = await self._reader.partitions() if self._last_end is None else self._last_end
        offsets = await self._reader.limit(self._options.starting, partitions, is_start=True)
        of_now = {each for each, offset in offsets.items() if offset == LATEST}
        self._begin_is_of_now = bool(of_now)
        if self._last_end is not None:  # the latest must not be behind the end of the run
            offsets.update({each: self._last_end[each] for each in of_now})
        self._begin = await self._reader.resolved(offsets)
        return self._begin

    async def end(self, start: Offsets, is_only: bool) -> Offsets:
        """Where the next micro-batch ends; at ``start`` if there is none.

        Args:
            start: where it begins.
            is_only: it is the only one of its run (``Trigger.Once``), so that no option limits it.

        Raises:
            TrionetError: the cluster could not be asked.
        """
        is_new = self._begin is not None and not self._has_planned
        self._has_planned = True
        ends = await self._latest(start)
        # The only one would have nothing in it. It is empty only if what it leaves could not be
        # found again; what is the earliest, or has a number, is so once more if this one fails.
        if is_new and (not is_only or self._begin_is_of_now):
            return start
        if is_only:
            return ends
        earliest = await self._begins_of_new(start, ends)
        is_complete = self._last_end is not None  # nothing will come to make it more
        if self._delay is not None and not is_complete:
            now = trio.current_time()
            if self._delay.waits(start, ends, earliest, now):
                return start
        limit = self._options.max_offsets_per_trigger
        return ends if limit is None else rate_limited(limit, start, ends, earliest)

    async def ranges(self, start: Offsets, end: Offsets) -> list[OffsetRange]:
        """What each task of a micro-batch reads.

        Args:
            start: where it begins.
            end: where it ends.

        Raises:
            DataLossError: records between are gone, and ``failOnDataLoss`` is set.
            OffsetsMismatchError: it does not fit what a run of ``Trigger.AvailableNow`` has begun
                with.
            TrionetError: the cluster could not be asked.
        """
        is_repeated = not self._has_planned  # it was in the log of the checkpoint
        self._has_planned = True
        if is_repeated and self._begin is not None:
            # The first micro-batch, which was empty, once more. Its begin was found out anew, and
            # may be later, or of other partitions.
            start = {each: min(start[each], end[each]) for each in start.keys() & end.keys()}
            if self._begin_is_of_now:
                logger.warning("%s", _BEGIN_UNKNOWN)
        if self._last_end is not None and not is_repeated:
            verify_available_now(end, self._last_end, await self._latest_of_all())
        earliest = await self._begins_of_new(start, end)
        plan = stream_plan(
            start,
            end,
            earliest,
            min_partitions=self._options.min_partitions,
            max_records=self._options.max_records_per_partition,
            topic_ids=self._reader.topic_ids,
        )
        self._tell(plan.losses)
        return plan.ranges

    async def _latest(self, start: Offsets) -> Offsets:
        if self._last_end is not None:
            await trio.lowlevel.checkpoint()
            return self._last_end
        await trio.sleep_until(self._asked_at + ASK_SECONDS_MIN)
        self._ends = await self._latest_of_all(start)
        self._asked_at = trio.current_time()
        return self._ends

    async def _latest_of_all(self, known: Offsets | None = None) -> Offsets:
        return await self._reader.latest(await self._reader.partitions(), known)

    async def _begins_of_new(
        self, start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]
    ) -> Offsets:
        new = end.keys() - start.keys()
        if not new:
            await trio.lowlevel.checkpoint()
            return {}
        return await self._reader.earliest(new)

    def _tell(self, losses: list[DataLossError]) -> None:
        for loss in losses:
            if self._options.fail_on_data_loss:
                raise loss
            logger.warning("%s", loss)
