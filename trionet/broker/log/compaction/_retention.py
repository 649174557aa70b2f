"""Decides what of each batch stays (Kafka: Cleaner.cleanInto, MemoryRecords.filterTo).

* Records that an aborted transaction wrote go at once; a marker, once no batch of its transaction
  was met and its delete horizon has passed (see :mod:`._cleaned_transactions`).
* Of the other records, the last one of each key stays. If it is a tombstone, its batch gets a
  delete horizon, which is when the tombstone goes (KIP-534): a consumer that reads the log from its
  start within ``delete.retention.ms`` cannot miss it. Records that the map does not cover stay.
* The last batch of an active producer stays, even if it is empty: it has the producer's last
  sequence number, or with a marker its epoch. So does the last batch below the end of the round.
"""

# Compiled by mypyc.

from __future__ import annotations

from typing import Final, NamedTuple

from ....errors import WireFormatError
from ....protocol.records._batch import BatchHeader, check_crc
from ....protocol.records._compaction import KeptRecords, emptied, rebuild_batch, select_records
from ....protocol.records._typed_compaction import DELETE_HORIZON_MAX, OffsetMap
from ._cleaned_transactions import CleanedTransactions

#: It covers no record, so that all of them are kept.
_NOTHING: Final = OffsetMap(1, 0)


class Retained(NamedTuple):
    """What stays of a batch."""

    header: BatchHeader
    chunks: list[bytes] | None
    """The chunks of the batch; None if it is unchanged."""
    kept_count: int
    """The number of its records."""


class RecordFilter:
    """Decides what stays of each batch, as a cleaning passes through a log.

    Args:
        offsets: the last offset of each key.
        transactions: the state of the transactions where the filter begins.
        last_records: the last data offset, or -1, and the epoch of each active producer.
        end_offset: the offset after the last one that the round may clean.
        delete_retention_ms: the value of ``delete.retention.ms``.
        now_ms: the time of the round.
        inflated_bytes_max: the limit on the decompressed size of a batch.

    Attributes:
        messages_read: the number of records that were looked at.
        invalid_messages: how many of them had no key, and were removed therefore.
    """

    __slots__ = (
        "_delete_horizon",
        "_end_offset",
        "_inflated_bytes_max",
        "_last_records",
        "_now_ms",
        "_offsets",
        "_transactions",
        "invalid_messages",
        "messages_read",
    )

    def __init__(
        self,
        offsets: OffsetMap,
        transactions: CleanedTransactions,
        last_records: dict[int, tuple[int, int]],
        *,
        end_offset: int,
        delete_retention_ms: int,
        now_ms: int,
        inflated_bytes_max: int,
    ) -> None:
        self.messages_read = 0
        self.invalid_messages = 0
        self._offsets = offsets
        self._transactions = transactions
        self._last_records = last_records
        self._end_offset = end_offset
        self._delete_horizon = min(now_ms + delete_retention_ms, DELETE_HORIZON_MAX)
        self._now_ms = now_ms
        self._inflated_bytes_max = inflated_bytes_max

    def filter(self, buf: bytes, pos: int, header: BatchHeader) -> Retained | None:
        """Return what stays of the batch at ``pos``; None if nothing does.

        Raises:
            WireFormatError: the batch is malformed.
        """
        if header.is_control:
            return self._filter_marker(buf, pos, header)
        is_aborted = self._transactions.is_aborted(header)
        must_stay = self._must_stay(header)
        if (is_aborted and not must_stay) or not header.count:
            return self._without_records(buf, pos, header, must_stay)
        self.messages_read += header.count
        if is_aborted:
            return self._without_records(buf, pos, header, must_stay)
        horizon = header.delete_horizon
        kept = select_records(
            self._offsets,
            buf,
            pos,
            self._inflated_bytes_max,
            keep_tombstones=horizon is None or self._now_ms < horizon,
        )
        self.invalid_messages += kept.selection.keyless_count
        if not kept.selection.kept_count:
            return self._without_records(buf, pos, header, must_stay)
        return self._with_records(buf, pos, header, kept, kept.selection.has_tombstones)

    def _filter_marker(self, buf: bytes, pos: int, header: BatchHeader) -> Retained | None:
        is_obsolete = self._transactions.is_obsolete(buf, pos, header)
        must_stay = self._must_stay(header)
        horizon = header.delete_horizon
        is_discarded = is_obsolete and horizon is not None and horizon <= self._now_ms
        if must_stay or not is_discarded:
            self.messages_read += header.count
        if is_discarded or not header.count:
            return self._without_records(buf, pos, header, must_stay)
        kept = select_records(_NOTHING, buf, pos, self._inflated_bytes_max, keep_tombstones=True)
        needs_horizon = is_obsolete or kept.selection.has_tombstones
        return self._with_records(buf, pos, header, kept, needs_horizon)

    def _must_stay(self, header: BatchHeader) -> bool:
        if header.last_offset + 1 == self._end_offset:
            return True
        if header.producer_id < 0:
            return False
        last = self._last_records.get(header.producer_id)
        if last is None:
            return False
        last_data_offset, epoch = last
        if last_data_offset >= 0:
            return header.last_offset == last_data_offset
        return header.is_control and header.producer_epoch == epoch

    def _with_records(
        self, buf: bytes, pos: int, header: BatchHeader, kept: KeptRecords, needs_horizon: bool
    ) -> Retained:
        count = kept.selection.kept_count
        gets_horizon = needs_horizon and header.delete_horizon is None
        if count == header.count and not gets_horizon:
            return Retained(header, None, count)
        self._verify(buf, pos, header)
        header, chunks = rebuild_batch(header, kept, self._delete_horizon if gets_horizon else None)
        return Retained(header, chunks, count)

    def _without_records(
        self, buf: bytes, pos: int, header: BatchHeader, must_stay: bool
    ) -> Retained | None:
        self._verify(buf, pos, header)
        if not must_stay:
            return None
        header = emptied(header)
        return Retained(header, [header.pack()], 0)

    def _verify(self, buf: bytes, pos: int, header: BatchHeader) -> None:
        """Check a batch that is changed or removed, unless it was checked to be mapped.

        Removing it would hide the damage, and so would the checksum of a batch that is rebuilt.
        """
        if not self._offsets.covers(header.base_offset, header.last_offset):
            verify_checksum(buf, pos, header)


def verify_checksum(buf: bytes, pos: int, header: BatchHeader) -> None:
    """Check the batch at ``pos``.

    Raises:
        WireFormatError: it is damaged.
    """
    if not check_crc(buf, pos, header):
        raise WireFormatError(
            f"the checksum of the batch with offsets {header.base_offset} to {header.last_offset}"
            " is wrong"
        )
