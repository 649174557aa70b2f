"""What Kafka's cleaner keeps of a log, said as plainly as possible.

This is a model to compare implementations with: records are values in lists, nothing is read from
files, nothing is bounded. It follows Kafka's Cleaner, CleanedTransactionMetadata and
MemoryRecords.filterTo, and shares no code with the package but the reader of records.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from trionet.protocol.records._batch import iter_batches
from trionet.protocol.records._records import decode_batch, read_marker

NO_TIMESTAMP = -1


class KeptRecord(NamedTuple):
    """One record; of its headers, the model only says that they stay as they are."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


class KeptBatch(NamedTuple):
    """A batch: the fields of its header that have a meaning of their own, and its records."""

    base_offset: int
    last_offset: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    leader_epoch: int
    is_transactional: bool
    is_control: bool
    has_append_time: bool
    codec: int
    delete_horizon: int | None
    max_timestamp: int
    records: tuple[KeptRecord, ...]

    @property
    def is_filler(self) -> bool:
        """Whether it only says up to where offsets are used."""
        return not self.records and self.producer_id < 0


class Aborted(NamedTuple):
    """An entry of a transaction index (KIP-98)."""

    producer_id: int
    first_offset: int
    last_offset: int
    stable_offset: int


class ModelSegment(NamedTuple):
    base_offset: int
    batches: list[KeptBatch]
    aborted: list[Aborted]


class Round(NamedTuple):
    """What a cleaning is told.

    Attributes:
        first_dirty_offset: where the last cleaning ended.
        end_offset: where the first segment begins that must not be cleaned.
        keys_max: the number of keys that the offset map holds.
        delete_retention_ms: how long tombstones and markers stay after they became removable.
        now_ms: the current time.
        last_records: of each active producer the offset of its last data (-1: it has none) and its
            epoch.
    """

    first_dirty_offset: int
    end_offset: int
    keys_max: int
    delete_retention_ms: int
    now_ms: int
    last_records: dict[int, tuple[int, int]]


class OffsetsOfKeys(NamedTuple):
    """The map of the first pass: the offset of the last record of each key, up to an offset."""

    offsets: dict[bytes, int]
    latest: int


def batches_in(data: bytes) -> list[KeptBatch]:
    """Decode the batches of a log file."""
    return [_batch(data[at : at + header.size]) for at, header in iter_batches(data)]


@lru_cache(1024)
def _batch(data: bytes) -> KeptBatch:
    ((_, header),) = iter_batches(data)
    records = decode_batch(data)
    return KeptBatch(
        header.base_offset,
        header.last_offset,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.leader_epoch,
        header.is_transactional,
        header.is_control,
        header.timestamp_type == 1,
        header.codec,
        header.delete_horizon,
        header.max_timestamp,
        tuple(KeptRecord(*each[:4], tuple(each[4])) for each in records),
    )


class Transactions:
    """The transactions that a pass over the log is inside of (CleanedTransactionMetadata)."""

    def __init__(self, aborted: list[Aborted]) -> None:
        self._waiting = sorted(aborted, key=lambda each: each.first_offset)
        self._committed: set[int] = set()
        self._aborted: dict[int, Aborted] = {}
        self._with_data: set[Aborted] = set()
        #: The aborted transactions of which there was data, as their markers came.
        self.still_there: list[Aborted] = []

    def may_go(self, batch: KeptBatch) -> bool:
        """Whether a batch is aborted data, or a marker of a transaction without data."""
        while self._waiting and self._waiting[0].first_offset <= batch.last_offset:
            begun = self._waiting.pop(0)
            self._aborted.setdefault(begun.producer_id, begun)
        if batch.is_control:
            return self._is_marker_of_nothing(batch)
        if not batch.is_transactional:
            return False
        transaction = self._aborted.get(batch.producer_id)
        if transaction is None:
            self._committed.add(batch.producer_id)
            return False
        self._with_data.add(transaction)
        return True

    def _is_marker_of_nothing(self, batch: KeptBatch) -> bool:
        if not batch.records:
            return True
        marker = read_marker(batch.records[0].key, batch.records[0].value)
        if marker is None:
            return False
        if marker.is_commit:
            had_data = batch.producer_id in self._committed
            self._committed.discard(batch.producer_id)
            return not had_data
        aborted = self._aborted.pop(batch.producer_id, None)
        if aborted is None or aborted not in self._with_data:
            return True
        self.still_there.append(aborted)
        return False


def clean(segments: list[ModelSegment], told: Round) -> tuple[list[ModelSegment], int]:
    """Clean the segments below ``told.end_offset``.

    Returns:
        The segments of the whole log after it, each cleaned one by itself, and the offset where
        the next cleaning begins.
    """
    known = _offsets_of_keys(segments, told)
    transactions = Transactions([each for segment in segments for each in segment.aborted])
    after = []
    for segment in segments:
        # Also the segment that the map knows only in part.
        if segment.base_offset > known.latest or segment.base_offset >= told.end_offset:
            after.append(segment)
            continue
        transactions.still_there = []
        kept = [
            result
            for batch in segment.batches
            if (result := _cleaned(batch, known, transactions, told)) is not None
        ]
        after.append(ModelSegment(segment.base_offset, kept, transactions.still_there))
    return after, known.latest + 1


def _offsets_of_keys(segments: list[ModelSegment], told: Round) -> OffsetsOfKeys:
    offsets: dict[bytes, int] = {}
    latest = -1
    start = told.first_dirty_offset
    transactions = Transactions([each for segment in segments for each in segment.aborted])
    for segment, end in _with_ends(segments):
        if segment.base_offset >= told.end_offset:
            break
        for batch in segment.batches:
            is_aborted = transactions.may_go(batch)
            if not (batch.is_control or is_aborted):
                for record in batch.records:
                    if record.key is None or record.offset < start:
                        continue
                    if len(offsets) >= told.keys_max:
                        return OffsetsOfKeys(offsets, latest)
                    offsets[record.key] = latest = record.offset
            if batch.last_offset >= start:
                latest = batch.last_offset
        if end > start:
            latest = end - 1
    return OffsetsOfKeys(offsets, latest)


def _with_ends(segments: list[ModelSegment]) -> Iterator[tuple[ModelSegment, int]]:
    for segment, following in pairwise(segments):
        yield segment, following.base_offset


def _cleaned(
    batch: KeptBatch, known: OffsetsOfKeys, transactions: Transactions, told: Round
) -> KeptBatch | None:
    may_go = transactions.may_go(batch)
    is_due = batch.delete_horizon is not None and batch.delete_horizon <= told.now_ms
    if may_go and (is_due or not batch.is_control):
        records: tuple[KeptRecord, ...] = ()
    elif batch.is_control:
        records = batch.records
    else:
        records = tuple(each for each in batch.records if _is_kept(each, known, is_due))
    if records:
        return _with_records(batch, records, may_go, told)
    if _is_last_of_producer(batch, told) or batch.last_offset + 1 == told.end_offset:
        return batch._replace(records=(), codec=0, delete_horizon=None)
    return None


def _is_kept(record: KeptRecord, known: OffsetsOfKeys, is_due: bool) -> bool:
    if record.offset > known.latest:
        return True
    if record.key is None:
        return False
    is_latest = record.offset >= known.offsets.get(record.key, -1)
    return is_latest and (record.value is not None or not is_due)


def _with_records(
    batch: KeptBatch, records: tuple[KeptRecord, ...], may_go: bool, told: Round
) -> KeptBatch:
    horizon = batch.delete_horizon
    may_go_later = any(each.value is None for each in records) or (batch.is_control and may_go)
    if horizon is None and may_go_later:
        horizon = told.now_ms + told.delete_retention_ms
    elif records == batch.records:
        return batch
    newest = max(each.timestamp for each in records)
    return batch._replace(records=records, delete_horizon=horizon, max_timestamp=newest)


def _is_last_of_producer(batch: KeptBatch, told: Round) -> bool:
    last = told.last_records.get(batch.producer_id)
    if last is None or batch.producer_id < 0:
        return False
    last_offset, epoch = last
    if last_offset >= 0:
        return batch.last_offset == last_offset
    return batch.is_control and batch.producer_epoch == epoch
