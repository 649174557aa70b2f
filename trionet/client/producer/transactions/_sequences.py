"""The sequence numbers of a partition, which let its leader detect duplicates and gaps (KIP-98).

(Kafka: TxnPartitionEntry.) This module performs no I/O. The sequence number of a batch is the
number of its first record, and the numbers of the next batch continue after the last record. Here,
the batches *in flight* of a partition are the batches that have sequence numbers but no outcome,
whether they are on the wire or queued for a retry. They are kept in sequence order.

The hard case is a batch whose response was lost and whose retry is rejected as out of order. A
leader remembers the last five batches of a producer, but only the last batch after a clean restart
(Kafka: the snapshots of ProducerStateManager). Therefore the log may or may not contain the
rejected batch before the batches that follow it. Kafka's producer begins a new epoch and sends all
batches again, which may write this batch twice. This producer sends the following batches first,
and takes their responses as evidence:

1. A leader that knows the producer accepts only the next sequence number. If it has appended a
   following batch, it must also have appended the rejected batch, *provided that it knew the
   producer when both were sent*. A leader that does not know the producer accepts any sequence
   number (Kafka: ProducerAppendInfo.checkSequence), so it might append the following batch without
   the rejected batch. Therefore only one batch is in flight until the leader has acknowledged a
   batch of this epoch. The same applies to a new leader, and after a pause in which the leader may
   have forgotten the producer (:meth:`PartitionSequences.may_pipeline`).
2. The offsets between the last acknowledged record and the following batch must leave space for the
   rejected batch. This detects a leader that forgot the producer in the meantime.

The rejected batch counts as acknowledged only if both conditions are met. Otherwise a new epoch
begins.
"""

# Compiled by mypyc.

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final, NamedTuple, Protocol

from ..._topic_partition import TopicPartition

SEQUENCE_MAX: Final = 2**31 - 1
EPOCH_MAX: Final = 2**15 - 1
NONE: Final = -1

#: The time after an acknowledgement for which a leader is assumed to know the producer. A leader
#: forgets a producer after ``producer.id.expiration.ms``, one day by default. A shorter time is
#: safe and costs little, since only one batch after a pause is sent alone.
KNOWN_SECONDS: Final = 10.0


class ProducerIdentity(NamedTuple):
    """A producer id and its epoch.

    Attributes:
        id: the producer id; -1 if none was assigned.
        epoch: the producer epoch; leaders reject batches of older epochs.
    """

    id: int = NONE
    epoch: int = NONE

    @property
    def is_valid(self) -> bool:
        return self.id != NONE


NO_IDENTITY: Final = ProducerIdentity()


class SequencedBatch(Protocol):
    """The attributes of :class:`.ProducerBatch` that this module uses."""

    @property
    def topic_partition(self) -> TopicPartition: ...

    @property
    def record_count(self) -> int: ...

    @property
    def base_sequence(self) -> int: ...

    @property
    def leader_epoch(self) -> int: ...

    @property
    def may_be_written(self) -> bool: ...

    @property
    def producer_id(self) -> int: ...

    @property
    def producer_epoch(self) -> int: ...

    def set_producer_state(self, producer_id: int, epoch: int, base_sequence: int) -> None: ...


def after(sequence: int, records: int) -> int:
    """Return a sequence number increased by ``records``, wrapping around to 0."""
    return (sequence + records) & SEQUENCE_MAX


def last_sequence(batch: SequencedBatch) -> int:
    """Return the sequence number of the last record of a batch."""
    return after(batch.base_sequence, batch.record_count - 1)


class PartitionSequences:
    """The sequence numbers of one partition.

    Args:
        identity: the producer id and epoch to which the numbers belong.

    Attributes:
        identity: the producer id and epoch to which the numbers belong.
        next: the sequence number of the next new batch.
        last_acked: the sequence number of the last acknowledged record; -1 for none.
    """

    __slots__ = (
        "_acked_at",
        "_end_offset",
        "_in_flight",
        "_leader_epoch",
        "_refused",
        "_shown_written",
        "identity",
        "last_acked",
        "next",
    )

    def __init__(self, identity: ProducerIdentity) -> None:
        self.identity = identity
        self.next = 0
        self.last_acked = NONE
        # The last acknowledgement: its arrival time, leader epoch, and offset after the batch.
        self._acked_at = -math.inf
        self._leader_epoch = NONE
        self._end_offset = NONE
        self._in_flight: dict[SequencedBatch, None] = {}
        # In-flight batches that the leader has reported as out of order. The responses to the
        # following batches show whether they were written.
        self._refused: dict[SequencedBatch, None] = {}
        # In-flight batches that the leader must have appended, because it has a following batch.
        self._shown_written: dict[SequencedBatch, None] = {}

    @property
    def has_in_flight(self) -> bool:
        return bool(self._in_flight)

    @property
    def first_in_flight(self) -> SequencedBatch | None:
        """The first batch in flight that the leader has not reported as out of order."""
        for batch in self._in_flight:
            if batch not in self._refused:
                return batch
        return None

    def may_pipeline(self, leader_epoch: int, now: float) -> bool:
        """Return whether a new batch may be sent while other batches are in flight.

        The leader must know this epoch of the producer. Otherwise it would accept the new batch
        without the preceding batches.

        Args:
            leader_epoch: the epoch of the leader to which the batch would be sent.
            now: the current time on the event loop's clock, in seconds.
        """
        return (
            self.last_acked != NONE
            and self._leader_epoch == leader_epoch
            and now - self._acked_at < KNOWN_SECONDS
        )

    @property
    def has_refused(self) -> bool:
        return bool(self._refused)

    @property
    def are_all_refused(self) -> bool:
        """Whether all batches in flight are out of order, and no response can resolve them."""
        return bool(self._in_flight) and len(self._refused) == len(self._in_flight)

    def is_refused(self, batch: SequencedBatch) -> bool:
        return batch in self._refused

    def refuse(self, batch: SequencedBatch) -> None:
        """Record that the leader reported a batch as out of order."""
        self._refused[batch] = None

    def take_written(self) -> list[SequencedBatch]:
        """Remove and return the out-of-order batches now known to have been written."""
        written = [each for each in self._refused if each in self._shown_written]
        for each in written:
            self.remove(each)
        return written

    def is_shown_written(self, batch: SequencedBatch) -> bool:
        """Return whether the acknowledgement of a later batch proves that a batch was written."""
        return batch in self._shown_written

    def assign(self, batch: SequencedBatch) -> None:
        """Assign the next sequence number to a new batch."""
        batch.set_producer_state(self.identity.id, self.identity.epoch, self.next)
        self.next = after(self.next, batch.record_count)
        self._in_flight[batch] = None

    def is_of_current_epoch(self, batch: SequencedBatch) -> bool:
        """Return whether a batch was numbered in the current epoch."""
        return (batch.producer_id, batch.producer_epoch) == self.identity

    def remove(self, batch: SequencedBatch) -> bool:
        """Remove a batch whose outcome is known. Returns whether it was in flight."""
        if batch not in self._in_flight:
            return False
        del self._in_flight[batch]
        self._refused.pop(batch, None)
        self._shown_written.pop(batch, None)
        return True

    def replace(self, batch: SequencedBatch, pieces: Iterable[SequencedBatch]) -> None:
        """Replace a split batch with its parts, which keep its sequence numbers."""
        in_flight = list(self._in_flight)
        place = in_flight.index(batch)
        in_flight[place : place + 1] = pieces
        self._in_flight = dict.fromkeys(in_flight)

    def acked(self, batch: SequencedBatch, base_offset: int, now: float) -> None:
        """Record that the leader has appended a batch of the current epoch.

        Args:
            batch: the batch; it may already have failed, for example after a timeout.
            base_offset: the offset of the first record; -1 if the leader does not know it.
            now: the current time on the event loop's clock, in seconds.
        """
        self._acked_at = now
        self._leader_epoch = batch.leader_epoch
        end_offset = base_offset + batch.record_count if base_offset >= 0 else NONE
        last = last_sequence(batch)
        if self.last_acked != NONE and not is_newer(last, self.last_acked):
            # A following batch was acknowledged earlier. If the leader had forgotten the producer,
            # this batch comes after that batch in the log and takes up offsets.
            if self._end_offset != NONE:
                self._end_offset = max(self._end_offset, end_offset)
            return
        if self._has_room_before(batch, base_offset):
            for each in self._in_flight:
                if not is_newer(batch.base_sequence, each.base_sequence):
                    break
                if each.may_be_written and is_newer(each.base_sequence, self.last_acked):
                    self._shown_written[each] = None
        self.last_acked = last
        self._end_offset = end_offset

    def _has_room_before(self, batch: SequencedBatch, base_offset: int) -> bool:
        """Return whether there are enough offsets for the unacknowledged records before a batch.

        There may be more, since other producers also append to the partition.
        """
        if self._end_offset == NONE:
            return False
        missing = (batch.base_sequence - after(self.last_acked, 1)) & SEQUENCE_MAX
        return base_offset - self._end_offset >= missing

    def is_all_acked(self) -> bool:
        """Return whether the last assigned sequence number is acknowledged."""
        return self.next == (0 if self.last_acked == NONE else after(self.last_acked, 1))

    def start_again(self, identity: ProducerIdentity) -> None:
        """Start a new epoch, and renumber the batches in flight from 0 (KIP-360).

        These batches must not be on the wire, since the leader might append them under their old
        numbers as well.
        """
        self.identity = identity
        self.next = 0
        self.last_acked = NONE
        self._end_offset = NONE
        self._refused.clear()
        self._shown_written.clear()
        for batch in self._in_flight:
            batch.set_producer_state(identity.id, identity.epoch, self.next)
            self.next = after(self.next, batch.record_count)


def is_newer(sequence: int, than: int) -> bool:
    """Return whether one sequence number comes after another, allowing for wraparound."""
    return 0 < (sequence - than) & SEQUENCE_MAX <= SEQUENCE_MAX // 2
