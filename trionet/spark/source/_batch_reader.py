"""What Spark calls to read a batch of topics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from ..options._options import SourceOptions
from ._partition_reading import read_partition


class BatchReader(DataSourceReader):
    """A batch; it is pickled for each task.

    Spark plans once for each ``load()``. What is the earliest and the latest is found out by each
    task anew, so that a table that is read again has what came meanwhile.

    Args:
        options: of the source.
    """

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def partitions(self) -> list[InputPartition]:
        """One range of offsets for each task."""
        from ..runtime._loop_host import host
        from ._batch_planning import batch_ranges
        from ._offset_reader import OffsetReader

        reader = OffsetReader(self._options)
        return [InputPartition(each) for each in host().call(batch_ranges, self._options, reader)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The records of one range, in one task."""
        return read_partition(self._options, partition)
