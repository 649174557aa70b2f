"""The readers that Spark calls, for batch and streaming queries. Imports pyspark.

They are pickled for the tasks. What only the driver needs for planning, and only a task for reading
(pyarrow, numpy), is imported where it is used: each of these processes is started by Spark for one
of the two.
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
    """Plans a batch in the driver and, pickled, reads it in the tasks.

    Spark plans once per ``load()``. Each task resolves earliest and latest again, so that a table
    that is read a second time includes the records that have arrived since.

    Args:
        options: the options of the source.
    """

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def partitions(self) -> list[InputPartition]:
        """Return one range of offsets per task."""
        from ._offset_reader import OffsetReader, batch_ranges

        reader = OffsetReader(self._options)
        return [InputPartition(each) for each in host().call(batch_ranges, self._options, reader)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Read the records of one range, in a task."""
        from ._range_reader import read_partition

        return read_partition(self._options, partition)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans the micro-batches in the driver and, pickled, reads them in the tasks.

    Args:
        options: the options of the source.
    """

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    @cached_property
    def _run(self) -> MicroBatches:
        """The plan of this run; created only in the driver, since it cannot be pickled."""
        from ._micro_batches import MicroBatches
        from ._offset_reader import OffsetReader

        return MicroBatches(self._options, OffsetReader(self._options))

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Let the run end at the current ends of the partitions."""
        host().call(self._run.fix_end)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the read limit to show in the plan.

        It is never ``ReadAllAvailable``, by which :meth:`latestOffset` recognizes
        ``Trigger.Once``. No class of Spark combines minimum, maximum and delay; the options apply
        in any case.
        """
        if self._options.max_offsets_per_trigger is not None:
            return ReadMaxRows(self._options.max_offsets_per_trigger)
        if self._options.min_offsets_per_trigger is not None:
            return ReadMinRows(self._options.min_offsets_per_trigger)
        return ReadMaxRows(LONG_MAX)

    def initialOffset(self) -> PlainOffsets:  # noqa: N802
        """Return where a new query starts."""
        return to_plain(host().call(self._run.initial))

    def latestOffset(self, start: PlainOffsets, limit: ReadLimit) -> PlainOffsets:  # noqa: N802
        """Return where the next micro-batch ends: ``start`` itself if there is none."""
        is_only = isinstance(limit, ReadAllAvailable)
        end = host().call(self._run.end, from_plain(start), is_only)
        plain = to_plain(end)
        return start if plain == start else plain

    def reportLatestOffset(self) -> PlainOffsets | None:  # noqa: N802
        """Return the ends found by the last :meth:`latestOffset`, without querying again."""
        ends = self._run.ends
        return None if ends is None else to_plain(ends)

    def partitions(self, start: PlainOffsets, end: PlainOffsets) -> list[InputPartition]:
        """Return one range of offsets per task of a micro-batch."""
        ranges = host().call(self._run.ranges, from_plain(start), from_plain(end))
        return [InputPartition(each) for each in ranges]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Read the records of one range, in a task."""
        from ._range_reader import read_partition

        return read_partition(self._options, partition)

    def commit(self, end: PlainOffsets) -> None:
        """Do nothing: Spark keeps the offsets, and none are committed to the cluster."""

    def stop(self) -> None:
        """Do nothing: Spark ends the process, which closes all connections."""
