"""What Spark calls to read topics as a stream."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from ...protocol._config_types import LONG_MAX
from ..offsets._partition_offsets import PlainOffsets, from_plain, to_plain
from ..options._options import SourceOptions
from ..runtime._loop_host import host
from ._partition_reading import read_partition

if TYPE_CHECKING:
    from ._micro_batches import MicroBatches


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream; one plans a run of a query, and others, from a pickle, read for its tasks.

    Args:
        options: of the source.
    """

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    @cached_property
    def _run(self) -> MicroBatches:
        """Only where it plans: it can not be pickled."""
        from ._micro_batches import MicroBatches
        from ._offset_reader import OffsetReader

        return MicroBatches(self._options, OffsetReader(self._options))

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """The run ends where the topics end now."""
        host().call(self._run.fix_end)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Any but "all": that is what Spark says itself, for ``Trigger.Once`` alone.

        There is none that has a least, a most and a delay; the options have them.
        """
        if self._options.max_offsets_per_trigger is not None:
            return ReadMaxRows(self._options.max_offsets_per_trigger)
        if self._options.min_offsets_per_trigger is not None:
            return ReadMinRows(self._options.min_offsets_per_trigger)
        return ReadMaxRows(LONG_MAX)

    def initialOffset(self) -> PlainOffsets:  # noqa: N802
        """Where a new query begins."""
        return to_plain(host().call(self._run.begin))

    def latestOffset(self, start: PlainOffsets, limit: ReadLimit) -> PlainOffsets:  # noqa: N802
        """Where the next micro-batch ends; ``start`` itself if there is none."""
        is_only = isinstance(limit, ReadAllAvailable)
        end = host().call(self._run.end, from_plain(start), is_only)
        plain = to_plain(end)
        return start if plain == start else plain

    def reportLatestOffset(self) -> PlainOffsets | None:  # noqa: N802
        """What was found when the next micro-batch was asked for: nobody is asked again."""
        ends = self._run.ends
        return None if ends is None else to_plain(ends)

    def partitions(self, start: PlainOffsets, end: PlainOffsets) -> list[InputPartition]:
        """One range of offsets for each task of a micro-batch."""
        ranges = host().call(self._run.ranges, from_plain(start), from_plain(end))
        return [InputPartition(each) for each in ranges]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The records of one range, in one task."""
        return read_partition(self._options, partition)

    def commit(self, end: PlainOffsets) -> None:
        """Spark keeps the offsets; the cluster is not told."""

    def stop(self) -> None:
        """Spark ends the process, and with it all connections."""
