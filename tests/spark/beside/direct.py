"""Run cases with trionet alone: what Spark calls is called here, in Spark's order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from spark.beside import outcomes
from spark.beside.cases import Read, Stream, Write
from spark.beside.topics import StreamTopic
from trionet.errors import TrionetError
from trionet.spark import TrionetDataSource
from trionet.spark._offset_limits import PlainOffsets
from trionet.testing._threaded import ThreadedBroker

_HEADERS: Final = ArrayType(
    StructType([StructField("key", StringType()), StructField("value", BinaryType())])
)
_TYPES: Final[Mapping[str, tuple[DataType, Any]]] = {
    "string": (StringType(), pa.string()),
    "binary": (BinaryType(), pa.binary()),
    "int": (IntegerType(), pa.int32()),
    "bigint": (LongType(), pa.int64()),
    "double": (DoubleType(), pa.float64()),
    "array<struct<key:string,value:binary>>": (
        _HEADERS,
        pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()})),
    ),
}
#: Save modes in which Spark itself refuses to write to a source in Python.
REFUSED_BY_SPARK: Final = frozenset({None, "ignore", "error"})


class Direct:
    """Runs cases against a broker that has the topics.

    Args:
        broker: the broker.
    """

    def __init__(self, broker: ThreadedBroker) -> None:
        self._broker = broker
        self._number = 0

    def run(self, case: Read | Stream | Write) -> str:
        """Run a case; return what came of it, errors too."""
        self._number += 1
        try:
            match case:
                case Read():
                    return self._read(case)
                case Stream():
                    return self._stream(case)
                case Write():
                    return self._write(case)
        except TrionetError as error:
            return f"error: {outcomes.error_of(error)}"

    def _source(self, options: Mapping[str, str], **topics: str) -> TrionetDataSource:
        given = {"kafka.bootstrap.servers": self._broker.bootstrap_servers, **options}
        return TrionetDataSource(
            {
                name: topics.get(text, text) if name in {"topic", "subscribe"} else text
                for name, text in given.items()
            }
        )

    def _read(self, case: Read) -> str:
        source = self._source(case.options)
        reader = source.reader(source.schema())
        partitions = reader.partitions()
        return outcomes.read(_rows(reader, partitions), len(partitions))

    def _stream(self, case: Stream) -> str:
        name = f"d{self._number}"
        topic = StreamTopic(self._broker, name)
        options = {key: text.replace('"t"', f'"{name}"') for key, text in case.options.items()}
        source = self._source({"subscribe": name, **options})
        end: PlainOffsets | None = None
        batches: list[str] = []
        for step in case.steps:
            if step not in {"now", "once"}:
                topic.step(step)
                continue
            for rows, after in _run(source, end, is_once=step == "once"):
                end = after
                if rows:
                    batches.append(outcomes.offsets(rows, name))
            batches.append("|")
        return " ".join(batches)

    def _write(self, case: Write) -> str:
        if not case.is_stream and case.mode in REFUSED_BY_SPARK:
            return "error: AnalysisException"
        names = {each: f"{each}{self._number}" for each in ("t", "u")}
        for name in names.values():
            self._broker.create_topic(name, 2)
        schema = StructType(
            [StructField(each, _TYPES[kind][0]) for each, kind in case.columns.items()]
        )
        source = self._source(case.options, **names)
        is_overwrite = case.mode == "overwrite"
        make = source.streamWriter if case.is_stream else source.writer
        make(schema, is_overwrite).write(iter([_batch(case, names)]))
        return outcomes.written({each: self._broker.records(name) for each, name in names.items()})


def _rows(reader: Any, partitions: Sequence[InputPartition]) -> list[dict[str, Any]]:
    return [row for each in partitions for batch in reader.read(each) for row in batch.to_pylist()]


def _run(
    source: TrionetDataSource, start: PlainOffsets | None, *, is_once: bool
) -> Iterator[tuple[list[dict[str, Any]], PlainOffsets]]:
    """One run of a query, as MicroBatchExecution has it: the rows and the end of each batch."""
    reader: Any = source.streamReader(source.schema())
    if not is_once:
        reader.prepareForTriggerAvailableNow()
    limit: ReadLimit = ReadAllAvailable() if is_once else reader.getDefaultReadLimit()
    is_new = start is None
    position: PlainOffsets = reader.initialOffset() if start is None else start
    while True:
        end = reader.latestOffset(position, limit)
        if end == position and not is_new:
            return
        is_new = False
        yield _rows(reader, reader.partitions(position, end)), end
        position = end
        if is_once:
            return


def _batch(case: Write, names: Mapping[str, str]) -> Any:
    def column(name: str, kind: str, values: Sequence[Any]) -> Any:
        if name == "topic":
            values = [names.get(value, value) for value in values]
        if kind == "binary":
            values = [None if value is None else value.encode() for value in values]
        if kind.startswith("array"):
            values = [
                None
                if value is None
                else [
                    {"key": key, "value": None if text is None else text.encode()}
                    for key, text in value
                ]
                for value in values
            ]
        return pa.array(values, _TYPES[kind][1])

    columns = list(zip(*case.rows, strict=True)) or [() for _ in case.columns]
    return pa.record_batch(
        {
            name: column(name, kind, values)
            for (name, kind), values in zip(case.columns.items(), columns, strict=True)
        }
    )
