"""What Spark calls to plan and read, called here without Spark: no Java is needed."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadLimit

from trionet.spark._offset_limits import PlainOffsets
from trionet.spark._options import SourceOptions
from trionet.spark.source._readers import BatchReader, StreamReader


def opened(bootstrap_servers: str, **options: object) -> StreamReader:
    """A stream; underscores in the names of options are dots."""
    return StreamReader(_parsed(bootstrap_servers, options, is_stream=True))


def table(bootstrap_servers: str, **options: object) -> list[str]:
    """The values of a batch as texts, in the order of the partitions; options as above."""
    reader = BatchReader(_parsed(bootstrap_servers, options, is_stream=False))
    return _values(reader, reader.partitions())


def read(reader: StreamReader, start: PlainOffsets, end: PlainOffsets) -> list[str]:
    """The values of one micro-batch as texts, sorted."""
    return sorted(_values(reader, reader.partitions(start, end)))


class Query:
    """A query as Spark would run it, up to its next micro-batch."""

    def __init__(self, reader: StreamReader, start: PlainOffsets | None = None) -> None:
        self.reader = reader
        self.limit: ReadLimit = reader.getDefaultReadLimit()
        self.start = reader.initialOffset() if start is None else start

    def next(self) -> list[str]:
        end = self.reader.latestOffset(self.start, self.limit)
        values = read(self.reader, self.start, end)
        self.start = end
        return values


def _parsed(servers: str, options: dict[str, object], *, is_stream: bool) -> SourceOptions:
    texts = {name.replace("_", "."): str(value) for name, value in options.items()}
    return SourceOptions.parse({"kafka.bootstrap.servers": servers} | texts, is_stream=is_stream)


def _values(reader: StreamReader | BatchReader, partitions: Sequence[InputPartition]) -> list[str]:
    return [
        value.decode()
        for partition in partitions
        for batch in reader.read(partition)
        for value in batch.column("value").to_pylist()
    ]
