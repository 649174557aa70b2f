"""Transactions as a cleaning passes through a log (Kafka: CleanedTransactionMetadata).

Aborted records are removed at once. A marker is kept as long as a cleaning meets a batch of its
transaction; the first one that meets none gives it a delete horizon, and it goes after that.
"""

# Compiled by mypyc.

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Final

from ....protocol.records._batch import BatchHeader
from ....protocol.records._records import ABORT, COMMIT, control_type, decode_batch
from ..segments._aborted_transactions import AbortedTransaction

_first_offset: Final = itemgetter(1)


class CleanedTransactions:
    """The transactions that are open where a cleaning has arrived.

    Args:
        aborted: the aborted transactions with records below the end of the cleaning, wherever their
            markers are: a transaction whose marker follows later is no less aborted. Others do no
            harm.

    Attributes:
        retained: the aborted transactions whose markers are still needed; the caller moves them to
            the index of the cleaned segment that the marker is in.
    """

    __slots__ = ("_aborted", "_committed", "_observed", "_pending", "retained")

    def __init__(self, aborted: Sequence[tuple[int, int, int, int]]) -> None:
        # The next one is the last, so that taking it moves no other.
        self._pending = sorted(aborted, key=_first_offset, reverse=True)
        self._aborted: dict[int, tuple[int, int, int, int]] = {}
        self._observed: set[int] = set()
        self._committed: set[int] = set()
        self.retained: list[AbortedTransaction] = []

    def is_aborted(self, header: BatchHeader) -> bool:
        """Note a batch of records, and return whether its transaction was aborted."""
        self._advance(header)
        if not header.is_transactional:
            return False
        if header.producer_id in self._aborted:
            self._observed.add(header.producer_id)
            return True
        self._committed.add(header.producer_id)
        return False

    def is_obsolete(self, buf: bytes, pos: int, header: BatchHeader) -> bool:
        """Note the control batch at ``pos``, and return whether its transaction has no batch left.

        Raises:
            WireFormatError: the batch is malformed.
        """
        self._advance(header)
        if not header.count:
            return True  # it has lost its record because it was obsolete
        producer_id = header.producer_id
        kind = control_type(decode_batch(buf, pos)[0][2])
        if kind == ABORT:
            transaction = self._aborted.pop(producer_id, None)
            if producer_id not in self._observed:
                return True
            self._observed.remove(producer_id)
            if transaction is not None:
                self.retained.append(AbortedTransaction(*transaction))
            return False
        if kind == COMMIT:
            if producer_id not in self._committed:
                return True
            self._committed.remove(producer_id)
            return False
        return False

    def _advance(self, header: BatchHeader) -> None:
        """Begin the aborted transactions that began up to the end of a batch."""
        pending = self._pending
        while pending and pending[-1][1] <= header.last_offset:
            transaction = pending.pop()
            producer_id, _, marker_offset, _ = transaction
            if marker_offset >= header.base_offset:  # else it is over, and its marker is not read
                self._aborted[producer_id] = transaction
                self._observed.discard(producer_id)
