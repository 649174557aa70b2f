"""The fetched records of one partition from one response (Kafka: CompletedFetch, FetchConfig).

When a response arrives, only its batch headers are read. Records are decoded when they are
requested, in parts of limited size. Aborted transactions and markers are skipped (KIP-98).
"""

# Compiled by mypyc.

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import Final

from ...._util._raising import raise_from
from ....errors import (
    CorruptRecordError,
    DecompressionLimitError,
    FetchTooLargeError,
    PartitionError,
    WireFormatError,
)
from ....protocol.messages.fetch import AbortedTransaction
from ....protocol.records._batch import MAGIC, BatchHeader, Bytes, check_crc, iter_batches
from ....protocol.records._records import decode_batch, read_marker
from ....protocol.records._types import Columns
from ..._topic_partition import TopicPartition
from ..records._chunk import OFFSET_MAX, Chunk, FetchPosition, joined, sliced
from ..state._partition_state import PartitionState
from ._decompression import DecompressedBatch, Decompression, decompressed_inline
from ._settings import FetchSettings

#: Larger batches are decoded in parts of this many records, so as not to block the event loop.
DECODED_RECORDS_MAX: Final = 2000


class CompletedFetch:
    """The fetched batches of one partition, which are decoded in parts.

    Args:
        name: the partition.
        state: the state of the partition.
        position: the position from which the partition was fetched.
        records: the batches; the last one may be incomplete.
        aborted: the aborted transactions in the batches; used only with
            ``isolation.level=read_committed``.
        settings: the fetch settings.
        broker_id: the broker that the partition was fetched from.

    Raises:
        CorruptRecordError: the header of the first batch is malformed, or the batch is incomplete.

    Attributes:
        name: the partition.
        state: the state of the partition.
        chunk: the decoded records that are being handed out; None if there are none.
        decompression: a decompression that must run before more records can be decoded; None if
            none is needed.
        position: the position after the decoded records.
        end: the position after the last complete batch.
        size: the total size of the batches that are not completely decoded yet, in bytes.
    """

    def __init__(
        self,
        name: TopicPartition,
        state: PartitionState,
        position: FetchPosition,
        records: memoryview,
        aborted: Iterable[AbortedTransaction],
        settings: FetchSettings,
        broker_id: int,
    ) -> None:
        self.name = name
        self.state = state
        self.chunk: Chunk | None = None
        self.position = self.end = position
        self._settings = settings
        self._broker_id = broker_id
        self._jumps = state.jumps
        self._records = records
        self._filter = TransactionFilter(aborted, is_read_committed=settings.is_read_committed)
        self._next = 0
        self._opened: DecompressedBatch | None = None
        self.decompression: Decompression | None = None
        self._batches: list[tuple[int, BatchHeader]] = []
        try:
            for each in iter_batches(records):
                self._batches.append(each)
        except WireFormatError as error:
            if not self._batches:  # else the next fetch begins with it
                raise_from(self._corrupt(str(error)), error)
        if not self._batches:
            raise self._corrupt("the response does not contain a complete batch")
        start, header = self._batches[-1]
        self.size = start + header.size
        if header.last_offset <= OFFSET_MAX:
            self.end = _farther(position, header)

    @property
    def is_current(self) -> bool:
        """Whether the fetched records are still valid; see :attr:`.PartitionState.jumps`."""
        return self._jumps == self.state.jumps

    def next_chunk(self, records_wanted: int) -> Chunk | None:
        """Decode the next records; None if none are left or :attr:`decompression` must run first.

        Args:
            records_wanted: the number of records after which no further batch is joined to the
                chunk.

        Raises:
            CorruptRecordError: the next batch cannot be read; the next call raises it again.
            FetchTooLargeError: the next batch exceeds ``fetch.max.decompressed.bytes``; likewise.
        """
        start = self.position
        found: _Together | None = None
        try:
            while found is None or found.count < records_wanted:
                part = self._next_part(found)
                if part is None:
                    break
                found = part
        except PartitionError:
            if found is None:
                raise
        columns = None if found is None else found.columns
        stop = self.state.stop_offset
        if stop is not None and self.position.offset > stop:
            # Not past the stop offset: a reader that continues there must miss nothing.
            self.position = FetchPosition(stop, self.position.epoch)
            if columns is not None:
                columns = sliced(columns, 0, bisect_left(columns.offsets, stop))
        if found is None or columns is None or not columns.offsets:
            return None
        kind, epoch = found.timestamp_type, found.epoch
        self.chunk = Chunk(self.name, columns, kind, epoch, start, self.position, self._broker_id)
        return self.chunk

    def _next_part(self, found: _Together | None) -> _Together | None:
        """Decode the next visible records and join them to ``found``; None if there are none."""
        while self._opened is not None or self._next < len(self._batches):
            opened = self._opened
            if opened is None:
                start, header = self._batches[self._next]
                if found is not None and not found.fits(header):
                    return None
                if self.decompression is None and not self._is_for_users(start, header):
                    self._passed(header)
                    continue
                opened = self._open(start, header)
                if opened is None:
                    return None
            elif found is not None and not found.fits(opened.header):
                return None
            columns = self._decode(opened)
            if columns is None:
                continue
            if found is None:
                return _Together(opened.header, columns)
            found.add(columns)
            return found
        return None

    # Batches.

    def _is_for_users(self, start: int, header: BatchHeader) -> bool:
        """Whether a batch contains records that are visible to users (KIP-98)."""
        if header.magic != MAGIC:
            raise self._corrupt(
                f"message format {header.magic} (before Kafka 0.11) is not supported"
            )
        if header.count < 0 or header.last_offset > OFFSET_MAX:
            raise self._corrupt(
                f"a batch header contains an invalid number of records, {header.count}, or last"
                f" offset, {header.last_offset}"
            )
        if self._settings.checks_crcs and not check_crc(self._records, start, header):
            raise self._corrupt("the checksum of a batch does not match")
        try:
            return self._filter.lets_pass(self._records, start, header)
        except WireFormatError as error:
            raise_from(self._corrupt(str(error)), error)

    def _open(self, start: int, header: BatchHeader) -> DecompressedBatch | None:
        """Open a batch for decoding; None if it must be decompressed first."""
        decompression = self.decompression
        bytes_max = self._settings.decompressed_bytes_max
        if decompression is None:
            try:
                self._opened = decompressed_inline(self._records, start, header, bytes_max)
            except WireFormatError as error:
                raise_from(self._corrupt(str(error)), error)
            if self._opened is None:
                self.decompression = Decompression(self._records, start, bytes_max)
        elif decompression.opened is not None or decompression.error is not None:
            self.decompression = None
            self._opened = decompression.opened
            failure = decompression.error
            if isinstance(failure, DecompressionLimitError):
                raise_from(self._too_large(failure), failure)
            if failure is not None:
                raise_from(self._corrupt(str(failure)), failure)
        return self._opened

    def _decode(self, opened: DecompressedBatch) -> Columns | None:
        """Decode the next records of a batch, skipping records before the position."""
        try:
            columns = opened.read(DECODED_RECORDS_MAX)
        except WireFormatError as error:
            raise_from(self._corrupt(str(error)), error)
        header, first = opened.header, self.position.offset
        if opened.is_done:
            self._opened = None
            self._passed(header)
        elif columns.offsets[-1] >= first:
            self.position = FetchPosition(columns.offsets[-1] + 1, header.leader_epoch)
        if columns.offsets[0] >= first:
            return columns
        skipped = bisect_left(columns.offsets, first)
        if skipped == len(columns.offsets):
            return None
        return sliced(columns, skipped, len(columns.offsets))

    def _passed(self, header: BatchHeader) -> None:
        """Move the position past a batch, including any offsets that compaction has removed."""
        self._next += 1
        self.size -= header.size
        self.position = _farther(self.position, header)

    def _too_large(self, error: DecompressionLimitError) -> FetchTooLargeError:
        after = self._batches[self._next][1].last_offset + 1
        return FetchTooLargeError(
            f"cannot read {self.name} at offset {self.position.offset}: the records of its batch"
            f" are larger than fetch.max.decompressed.bytes = {error.bytes_max} when decompressed;"
            f" set fetch.max.decompressed.bytes higher, or seek() past the batch, to {after}",
            self.name.topic,
            self.name.partition,
            self.position.offset,
            bytes_max=error.bytes_max,
        )

    def _corrupt(self, why: str) -> CorruptRecordError:
        return CorruptRecordError(
            f"cannot read {self.name} at offset {self.position.offset}: {why}; seek() past that"
            " offset to continue",
            self.name.topic,
            self.name.partition,
            self.position.offset,
        )


class _Together:
    """The records of one or more batches, joined into single columns."""

    def __init__(self, header: BatchHeader, columns: Columns) -> None:
        self.timestamp_type = header.timestamp_type
        self.epoch = header.leader_epoch
        self.count = len(columns.offsets)
        self.columns = columns

    def fits(self, header: BatchHeader) -> bool:
        """Whether a batch may be joined to the preceding batches."""
        return header.leader_epoch == self.epoch and header.timestamp_type == self.timestamp_type

    def add(self, more: Columns) -> None:
        self.columns = joined(self.columns, more)
        self.count += len(more.offsets)


def _farther(position: FetchPosition, header: BatchHeader) -> FetchPosition:
    """Return the position after a batch, or ``position`` if that is further ahead."""
    if header.last_offset < position.offset:
        return position
    return FetchPosition(header.last_offset + 1, header.leader_epoch)


class TransactionFilter:
    """A filter for one partition's batches in a response, to which they must be passed in order.

    Args:
        aborted: the aborted transactions in the batches; used only with
            ``isolation.level=read_committed``.
        is_read_committed: whether to skip aborted transactions; transaction markers are always
            skipped.
    """

    def __init__(self, aborted: Iterable[AbortedTransaction], *, is_read_committed: bool) -> None:
        self._is_read_committed = is_read_committed
        self._aborted = sorted(aborted, key=lambda each: -each.first_offset)
        self._aborting: set[int] = set()

    def lets_pass(self, records: Bytes, start: int, header: BatchHeader) -> bool:
        """Whether a batch contains records that are visible to users.

        Args:
            records: the buffer that contains the batch.
            start: the index at which the batch starts.
            header: the header of the batch, which must be of format 2.

        Raises:
            WireFormatError: a transaction marker is malformed.
        """
        if not self._is_read_committed:
            return not header.is_control and header.count > 0
        while self._aborted and self._aborted[-1].first_offset <= header.last_offset:
            self._aborting.add(self._aborted.pop().producer_id)
        if header.is_control:
            if header.producer_id in self._aborting and _is_abort(records, start):
                self._aborting.remove(header.producer_id)
            return False
        is_aborted = header.is_transactional and header.producer_id in self._aborting
        return not is_aborted and header.count > 0


def _is_abort(records: Bytes, start: int) -> bool:
    rows = decode_batch(records, start)
    marker = read_marker(rows[0][2], rows[0][3]) if rows else None
    return marker is not None and not marker.is_commit
