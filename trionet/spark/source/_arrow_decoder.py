"""Decodes fetched records into Arrow batches with the columns of Spark's Kafka connector.

Imports pyarrow and numpy (extra ``spark``). A response is decoded column by column; only messages
from brokers older than Kafka 0.11 are decoded one record at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs
import numpy as np
import pyarrow as pa

from ...client._topic_partition import TopicPartition
from ...client.consumer.fetch._completed_fetch import TransactionFilter
from ...errors import (
    CorruptRecordError,
    DecompressionLimitError,
    FetchTooLargeError,
    WireFormatError,
)
from ...protocol._config_types import LONG_MAX
from ...protocol.messages.fetch import AbortedTransaction
from ...protocol.records._batch import (
    CONTROL,
    CRC_START,
    PREFIX_SIZE,
    TRANSACTIONAL,
    BatchHeader,
    Bytes,
    batch_positions,
    read_header,
)
from ...protocol.records._crc32c import crc32c
from ...protocol.records.columnar._arrow_columns import (
    HEADERS,
    binary_column,
    headers_column,
    number_column,
)
from ...protocol.records.columnar._numpy_batches import OpenedBatches, read_headers
from ...protocol.records.columnar._numpy_columns import (
    TIMESTAMP_OF_LOG,
    NumpyColumns,
    decode_batches,
)
from ...protocol.records.columnar._open_batches import open_batches
from ...protocol.records.message_sets._message_set import (
    MessageHeader,
    decode_message_set,
    iter_messages,
)

if TYPE_CHECKING:
    from ...protocol.records.columnar._numpy_batches import BatchHeaders, Numbers


@attrs.frozen
class FetchedRecords:
    """The undecoded records of a fetch response, and the offsets to read from them.

    Attributes:
        records: batches, or messages from old brokers; the last one may be truncated.
        start: the first offset to read.
        until: the offset after the last offset to read.
        aborted: the aborted transactions among the records; only with
            ``isolation.level=read_committed``.
    """

    records: Bytes
    start: int
    until: int
    aborted: tuple[AbortedTransaction, ...] = ()


def runs(records: Bytes) -> Iterator[list[int] | tuple[int, MessageHeader]]:
    """Yield the positions of each run of adjacent complete batches, or a single message.

    Iteration ends before a malformed batch or message: the next fetch starts there.

    Raises:
        WireFormatError: the first batch or message is malformed.
    """
    found = False
    try:
        for each in _all_runs(memoryview(records)):
            found = True
            yield each
    except WireFormatError:
        if not found:
            raise


def _all_runs(view: memoryview) -> Iterator[list[int] | tuple[int, MessageHeader]]:
    pos, previous = 0, -1
    while pos != previous:  # old segments contain messages, newer ones batches
        previous = pos
        for start, message in iter_messages(view, pos):
            yield start, message
            pos = start + message.size
        places, pos = batch_positions(view, pos)
        if places:
            yield places


def bounds(records: Bytes) -> tuple[int, int]:
    """Return the first offset of the complete batches, and the offset after their last one.

    The first offset of a compressed message set is unknown without decompression; its last offset
    is used instead.

    Raises:
        WireFormatError: the first batch is malformed or incomplete.
    """
    first = end = -1
    for run in runs(records):
        if isinstance(run, list):
            begin, last = (read_header(records, run[at]) for at in (0, -1))
            begins, end = begin.base_offset, last.last_offset + 1
        else:
            begins = run[1].offset
            end = begins + 1
        first = begins if first < 0 else first
    if end < 0:
        raise WireFormatError("the response contains no complete batch")
    return first, end


LetsPass: TypeAlias = Callable[[Bytes, int, BatchHeader], bool]

#: The maximum number of rows per Arrow batch; beyond a few thousand, larger batches are not faster.
BATCH_ROWS_MAX: Final = 10_000
#: The approximate maximum size of the keys and values in an Arrow batch, in bytes.
BATCH_BYTES_MAX: Final = 4 * 1024 * 1024
#: Record batches are decoded together, up to this uncompressed size in bytes.
DECODED_BYTES: Final = 16 * 1024 * 1024

#: TimestampType.NO_TIMESTAMP_TYPE, for messages of format 0, which have no timestamp.
NO_TIMESTAMP_TYPE: Final = -1

_TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
_MILLISECONDS_MAX: Final = (2**63 - 1) // 1000

_FIELDS: Final = (
    ("key", pa.binary()),
    ("value", pa.binary()),
    ("topic", pa.string()),
    ("partition", pa.int32()),
    ("offset", pa.int64()),
    ("timestamp", _TIMESTAMP),
    ("timestampType", pa.int32()),
)
_SCHEMAS: Final = (pa.schema(_FIELDS), pa.schema([*_FIELDS, ("headers", HEADERS)]))


def schema(include_headers: bool) -> Any:
    """Return the schema of the source as a ``pyarrow.Schema``."""
    return _SCHEMAS[include_headers]


class ColumnDecoder:
    """Decodes the fetched records of one partition.

    Args:
        name: the partition of the records.
        include_headers: whether to add the ``headers`` column.
        is_read_committed: whether to drop the records of aborted transactions.
        checks_crcs: whether to verify the checksum of each batch.
        decompressed_bytes_max: the limit on the size of a batch when it is decompressed.
    """

    def __init__(
        self,
        name: TopicPartition,
        *,
        include_headers: bool = False,
        is_read_committed: bool = False,
        checks_crcs: bool = True,
        decompressed_bytes_max: int = LONG_MAX,
    ) -> None:
        self._name = name
        self._include_headers = include_headers
        self._is_read_committed = is_read_committed
        self._checks_crcs = checks_crcs
        self._decompressed_bytes_max = decompressed_bytes_max
        self._schema = schema(include_headers)
        # Constant columns are built once and sliced to the length of each batch.
        self._topics = _repeated(name.topic)
        self._partitions = number_column(
            pa.int32(), np.full(BATCH_ROWS_MAX, name.partition, np.int32)
        )

    def decode(self, fetched: FetchedRecords) -> Iterator[Any]:
        """Yield the records as ``pyarrow.RecordBatch`` objects of at most ``BATCH_ROWS_MAX`` rows.

        Raises:
            CorruptRecordError: a batch is malformed.
            FetchTooLargeError: a batch exceeds the limit when it is decompressed.
        """
        try:
            for columns in self._columns(fetched):
                yield from self._cut(columns)
        except DecompressionLimitError as error:
            raise FetchTooLargeError(
                f"cannot read {self._name} from offset {fetched.start}: {error}; set the option"
                " kafka.fetch.max.decompressed.bytes higher, or remove it for no limit",
                *self._name,
                fetched.start,
                bytes_max=error.bytes_max,
            ) from error
        except WireFormatError as error:
            raise CorruptRecordError(
                f"cannot read {self._name} from offset {fetched.start}: {error}; to skip the"
                " corrupt records, start a new query with startingOffsets after them",
                *self._name,
                fetched.start,
            ) from error

    # The columns that differ from record to record.

    def _columns(self, fetched: FetchedRecords) -> Iterator[list[Any]]:
        passes = TransactionFilter(
            fetched.aborted, is_read_committed=self._is_read_committed
        ).lets_pass
        for run in runs(fetched.records):
            if isinstance(run, list):
                yield from self._of_batches(np.array(run), fetched, passes)
            else:
                pos, message = run
                data = bytes(memoryview(fetched.records)[pos : pos + message.size])
                yield from self._of_message(data, message, fetched)

    def _of_batches(
        self, places: Numbers, fetched: FetchedRecords, passes: LetsPass
    ) -> Iterator[list[Any]]:
        records = fetched.records
        headers = read_headers(records, places)
        after = np.flatnonzero(headers["base_offset"] >= fetched.until)
        if len(after):
            places, headers = places[: after[0]], headers[: after[0]]
        self._check(records, places, headers)
        visible = headers["count"] > 0
        if np.any(headers["attributes"] & (TRANSACTIONAL | CONTROL)):
            each = (passes(records, pos, read_header(records, pos)) for pos in places.tolist())
            visible &= np.fromiter(each, np.bool_, len(places))
        if not visible.all():
            places, headers = places[visible], headers[visible]
        limit = self._decompressed_bytes_max
        for opened in open_batches(
            records, places, headers, DECODED_BYTES, inflated_bytes_max=limit
        ):
            yield from self._of_records(opened, fetched)

    def _check(self, records: Bytes, places: Numbers, headers: BatchHeaders) -> None:
        if len(headers) and headers["count"].min() < 0:
            raise WireFormatError(f"invalid record count {headers['count'].min()} in a batch")
        if not self._checks_crcs:
            return
        with memoryview(records) as view:
            ends = (places + PREFIX_SIZE + headers["length"]).tolist()
            crcs = headers["crc"].tolist()
            for start, end, crc in zip((places + CRC_START).tolist(), ends, crcs, strict=True):
                if crc32c(view[start:end]) != crc:
                    raise WireFormatError("checksum mismatch in a batch")

    def _of_records(self, opened: OpenedBatches, fetched: FetchedRecords) -> Iterator[list[Any]]:
        columns = decode_batches(*opened, with_headers=self._include_headers)
        types = (opened.headers["attributes"] & TIMESTAMP_OF_LOG != 0).astype(np.int32)
        timestamp_types = np.repeat(types, opened.headers["count"])
        in_range = (columns.offsets >= fetched.start) & (columns.offsets < fetched.until)
        if not in_range.all():
            kept = np.flatnonzero(in_range)
            columns, timestamp_types = _selected(columns, kept), timestamp_types[kept]
        if not len(columns.offsets):
            return
        arrays = [
            binary_column(columns.body, columns.key_starts, columns.key_lengths),
            binary_column(columns.body, columns.value_starts, columns.value_lengths),
            number_column(pa.int64(), columns.offsets),
            _microseconds(columns.timestamps),
            number_column(pa.int32(), timestamp_types),
        ]
        if self._include_headers:
            arrays.append(headers_column(columns))
        yield arrays

    def _of_message(
        self, message: bytes, header: MessageHeader, fetched: FetchedRecords
    ) -> Iterator[list[Any]]:
        """Decode a message from a broker older than Kafka 0.11, or its compressed message set."""
        limit = self._decompressed_bytes_max
        rows, _ = decode_message_set(message, inflated_bytes_max=limit)
        rows = [each for each in rows if fetched.start <= each[0] < fetched.until]
        if not rows:
            return
        timestamp_type = header.timestamp_type if header.magic else NO_TIMESTAMP_TYPE
        offsets, timestamps, keys, values, _ = zip(*rows, strict=True)
        arrays = [
            pa.array(keys, pa.binary()),
            pa.array(values, pa.binary()),
            number_column(pa.int64(), np.array(offsets, np.int64)),
            _microseconds(np.array(timestamps, np.int64)),
            number_column(pa.int32(), np.full(len(rows), timestamp_type, np.int32)),
        ]
        if self._include_headers:  # messages of these formats have none
            arrays.append(pa.nulls(len(rows), HEADERS))
        yield arrays

    def _cut(self, arrays: Sequence[Any]) -> Iterator[Any]:
        """Slice the columns into batches of a suitable size, without copying."""
        key, value, *rest = arrays
        rows = len(key)
        size = max(key.nbytes + value.nbytes, 1)
        step = max(min(BATCH_ROWS_MAX, rows * BATCH_BYTES_MAX // size), 1)
        for start in range(0, rows, step):
            count = min(step, rows - start)
            constants = self._topics[:count], self._partitions[:count]
            first, second = key.slice(start, count), value.slice(start, count)
            others = (each.slice(start, count) for each in rest)
            yield pa.RecordBatch.from_arrays(
                [first, second, *constants, *others], schema=self._schema
            )


def _repeated(text: str) -> Any:
    """Build a column that repeats one text.

    ``pa.repeat`` would import pandas; see :func:`.number_column`.
    """
    data = text.encode()
    ends = np.arange(BATCH_ROWS_MAX + 1, dtype=np.int32) * np.int32(len(data))
    return pa.StringArray.from_buffers(
        BATCH_ROWS_MAX, pa.py_buffer(ends), pa.py_buffer(data * BATCH_ROWS_MAX)
    )


def _selected(columns: NumpyColumns, kept: Numbers) -> NumpyColumns:
    """Return the records with the given indices."""
    return NumpyColumns(
        columns.body,
        columns.offsets[kept],
        columns.timestamps[kept],
        columns.key_starts[kept],
        columns.key_lengths[kept],
        columns.value_starts[kept],
        columns.value_lengths[kept],
        None if columns.headers is None else columns.headers.of_records(kept),
    )


def _microseconds(milliseconds: Numbers) -> Any:
    """Convert record timestamps to microseconds, Spark's unit.

    A timestamp outside Spark's range becomes the nearest one in it. Producers choose timestamps,
    and brokers accept any from the past by default: one record must not end all queries.
    """
    clipped = np.clip(milliseconds, -_MILLISECONDS_MAX, _MILLISECONDS_MAX)
    return number_column(_TIMESTAMP, clipped * 1000)
