"""The least that a source in Python can do: what it takes is Spark's own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit
from pyspark.sql.types import StructType


class SyntheticSource(DataSource):
    """One row, or one in each of as many micro-batches as the option `rows` says."""

    @classmethod
    def name(cls) -> str:
        return "synthetic"

    def schema(self) -> str:
        return "value binary, offset bigint"

    def reader(self, schema: StructType) -> DataSourceReader:
        return _OneRow()

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return _OneRowEach(int(self.options["rows"]))


def _rows() -> Iterator[Any]:
    # Of nulls: `pa.array` would import pandas, where there is one.
    types = {"value": pa.binary(), "offset": pa.int64()}
    arrays = [pa.nulls(1, each) for each in types.values()]
    yield pa.RecordBatch.from_arrays(arrays, schema=pa.schema(types))


class _OneRow(DataSourceReader):
    def partitions(self) -> list[InputPartition]:
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return _rows()


class _OneRowEach(DataSourceStreamReader):
    def __init__(self, rows: int) -> None:
        self._rows = rows

    def initialOffset(self) -> dict[str, int]:
        return {"offset": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        return {"offset": min(start["offset"] + 1, self._rows)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return _rows()
