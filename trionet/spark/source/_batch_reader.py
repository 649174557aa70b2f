"""The reader that Spark calls for a batch query."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from ..options._options import SourceOptions


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
        from ..runtime._loop_host import host
        from ._offset_reader import OffsetReader, batch_ranges

        reader = OffsetReader(self._options)
        return [InputPartition(each) for each in host().call(batch_ranges, self._options, reader)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Read the records of one range, in a task."""
        from ._range_reader import read_partition  # with pyarrow, which planning does not need

        return read_partition(self._options, partition)
