"""The filter that skips aborted transactions and markers (KIP-98; Kafka: CompletedFetch)."""

from __future__ import annotations

from collections.abc import Iterable

from ....protocol.messages.fetch import AbortedTransaction
from ....protocol.records._batch import BatchHeader, Bytes
from ....protocol.records._records import decode_batch, read_marker


class TransactionFilter:
    """A filter for one partition's batches in a response, to which they must be passed in order.

    Args:
        aborted: the aborted transactions in the batches; used only with
            ``isolation.level=read_committed``.
        is_read_committed: whether to skip aborted transactions; transaction markers are always
            skipped.
    """

    __slots__ = ("_aborted", "_aborting", "_is_read_committed")

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
