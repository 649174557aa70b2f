"""The readers that Spark calls, for batch and streaming queries. Imports pyspark.

The readers are pickled for the tasks. Modules needed only by the driver for planning, or only by a
task for reading (pyarrow, numpy), are imported where they are used: Spark starts one process for
planning and others for reading.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
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

if TYPE_CHECKING:
    from ._micro_batches import MicroBatches


class BatchReader(DataSourceReader):
    """Plans a batch on the driver; pickled copies read it in the tasks.

    Spark plans once per ``load()``. Each task resolves earliest and latest again, so that reading
    a table again includes the records that have arrived in the meantime.

    Args:
        options: the options of the source.
    """

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def partitions(self) -> list[InputPartition]:
        """Return one partition per task, with its range of offsets."""
        from ._offset_reader import OffsetReader, batch_ranges

        reader = OffsetReader(self._options)
        return [InputPartition(each) for each in host().call(batch_ranges, self._options, reader)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Read the records of one range; called in a task."""
        from ._range_reader import read_partition

        return read_partition(self._options, partition)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches on the driver; pickled copies read them in the tasks.

    Args:
        options: the options of the source.
    """

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    @cached_property
    def _run(self) -> MicroBatches:
        """The planner of this run; created only on the driver, because it cannot be pickled."""
        from ._micro_batches import MicroBatches
        from ._offset_reader import OffsetReader

        return MicroBatches(self._options, OffsetReader(self._options))

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Fix the end of the run at the current ends of the partitions."""
        host().call(self._run.fix_end)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the read limit, which Spark only shows in the plan.

        The limit is never ``ReadAllAvailable``, by which :meth:`latestOffset` recognizes
        ``Trigger.Once``. No class of Spark combines minimum, maximum and delay. The options apply
        in any case.
        """
        if self._options.max_offsets_per_trigger is not None:
            return ReadMaxRows(self._options.max_offsets_per_trigger)
        if self._options.min_offsets_per_trigger is not None:
            return ReadMinRows(self._options.min_offsets_per_trigger)
        return ReadMaxRows(LONG_MAX)

    def initialOffset(self) -> PlainOffsets:  # noqa: N802
        """Return the start offsets of a new query."""
        return to_plain(host().call(self._run.initial))

    def latestOffset(self, start: PlainOffsets, limit: ReadLimit) -> PlainOffsets:  # noqa: N802
        """Return the end offsets of the next micro-batch: ``start`` itself if it would be empty."""
        is_only = isinstance(limit, ReadAllAvailable)
        end = host().call(self._run.end, from_plain(start), is_only)
        plain = to_plain(end)
        return start if plain == start else plain

    def reportLatestOffset(self) -> PlainOffsets | None:  # noqa: N802
        """Return the ends that :meth:`latestOffset` last found, without querying the cluster."""
        ends = self._run.ends
        return None if ends is None else to_plain(ends)

    def partitions(self, start: PlainOffsets, end: PlainOffsets) -> list[InputPartition]:
        """Return one partition per task of a micro-batch, with its range of offsets."""
        ranges = host().call(self._run.ranges, from_plain(start), from_plain(end))
        return [InputPartition(each) for each in ranges]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Read the records of one range; called in a task."""
        from ._range_reader import read_partition

        return read_partition(self._options, partition)

    def commit(self, end: PlainOffsets) -> None:
        """Do nothing: Spark stores the offsets, so none are committed to the cluster."""

    def stop(self) -> None:
        """Do nothing: Spark ends the process, which closes all connections."""
