"""The transactions of one log that are not decided yet (Kafka: ProducerStateManager).

A transaction begins in a log with its first batch there, and ends with its marker. Consumers with
``read_committed`` read up to the first offset of the oldest open one.

With ``flush.messages=1``, a power failure can still take a marker that is not on disk, and the
transaction would be open again. So a transaction counts until its marker is below the high
watermark (Kafka: unreplicatedTxns).
"""

# Compiled by mypyc.

from __future__ import annotations

from typing import Final

from ..segments._aborted_transactions import AbortedTransaction

#: Above every offset and every position.
NOWHERE: Final = 2**63 - 1


class OpenTransactions:
    """The open transactions of one log, and the ended ones whose markers are not visible yet.

    Positions are bytes from the start of the log; see :attr:`.Segment.bytes_before`.

    Every change can be repeated: an append that is completed after an exception does so.

    Attributes:
        first_offsets: the first offset of each open transaction, by producer id, ascending.
    """

    __slots__ = ("_ended", "_positions", "first_offsets")

    def __init__(self) -> None:
        self.first_offsets: dict[int, int] = {}
        self._positions: dict[int, int] = {}
        # First offset, position and offset of the marker, in the order of the markers.
        self._ended: list[tuple[int, int, int]] = []

    @property
    def is_empty(self) -> bool:
        """Whether no transaction is open, and every marker is visible."""
        return not self.first_offsets and not self._ended

    def begin(self, producer_id: int, first_offset: int, position: int) -> None:
        """Note the first batch of a transaction, at ``position``; nothing if one is open."""
        if producer_id not in self.first_offsets:
            self._positions[producer_id] = position
            self.first_offsets[producer_id] = first_offset

    def place(self, producer_id: int, position: int) -> None:
        """Correct the position where the open transaction of a producer begins."""
        self._positions[producer_id] = position

    def aborted(self, producer_id: int, marker_offset: int) -> AbortedTransaction | None:
        """Return what an abort marker makes of the open transaction of a producer.

        Call it before :meth:`end`. Returns None if no transaction of the producer is open: nothing
        that could be read is aborted.
        """
        first_offset = self.first_offsets.get(producer_id)
        if first_offset is None:
            return None
        stable_offset = marker_offset + 1
        for other, other_first_offset in self.first_offsets.items():
            if other != producer_id:
                stable_offset = other_first_offset
                break
        return AbortedTransaction(producer_id, first_offset, marker_offset, stable_offset)

    def end(self, producer_id: int, marker_offset: int, high_watermark: int) -> None:
        """Note the marker of a producer's open transaction; nothing if none is open."""
        first_offset = self.first_offsets.get(producer_id)
        if first_offset is None:
            return
        ended = self._ended
        if marker_offset >= high_watermark and (not ended or ended[-1][2] != marker_offset):
            ended.append((first_offset, self._positions[producer_id], marker_offset))
        del self.first_offsets[producer_id]
        self._positions.pop(producer_id, None)

    def first_unstable(self, high_watermark: int) -> tuple[int, int]:
        """Return the offset and the position where the oldest undecided transaction begins.

        Returns:
            Twice :data:`NOWHERE` if there is none.
        """
        offset = position = NOWHERE
        for producer_id, first_offset in self.first_offsets.items():
            offset, position = first_offset, self._positions[producer_id]
            break
        ended = self._ended
        visible = 0
        while visible < len(ended) and ended[visible][2] < high_watermark:
            visible += 1
        if visible:
            del ended[:visible]
        for ended_offset, ended_position, _ in ended:
            if ended_offset < offset:
                offset, position = ended_offset, ended_position
        return offset, position
