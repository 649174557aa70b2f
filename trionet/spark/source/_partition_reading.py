"""One task of Spark: the records of one range."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark import TaskContext
from pyspark.sql.datasource import InputPartition

from ..options._options import SourceOptions


def read_partition(options: SourceOptions, partition: InputPartition) -> Iterator[Any]:
    """The records of a range, in columns.

    Args:
        options: of the source.
        partition: its value is the range; without one, which is how Spark reads where nothing was
            planned, there are no records.
    """
    if partition.value is None:
        return iter(())
    from ._range_reader import read_range

    task = TaskContext.get()
    is_retry = task is not None and task.attemptNumber() > 0
    return read_range(options, partition.value, is_retry=is_retry)
