"""The sequence numbers of one partition's batches, by which leaders detect duplicates and gaps.

(KIP-98; Kafka: TxnPartitionEntry.) Pure. A batch has the sequence of its first record; the next
batch continues after that of its last record. The batches of a partition that have numbers but no
outcome are *in flight* here, in the order of their numbers, whether they are on the wire or queued
for a retry.

The hard case is a batch whose response was lost and which is out of order when it is sent again. A
leader remembers the last five batches of a producer, but only the last one after a clean restart
(Kafka: ProducerStateManager, its snapshots). So that batch may or may not be in the log,
before those that follow it. Kafka's producer begins a new epoch and sends everything again, which
writes it twice. Here the batches that follow are sent first, and their responses are used as
evidence:

1. A leader that knows the producer accepts nothing but the next sequence. That it has the
   following batch proves that it has this one, *if it knew the producer when both were sent*. A
   leader that does not know the producer accepts any sequence (Kafka:
   ProducerAppendInfo.checkSequence): if it rejects the first batch, it accepts the second one.
   Therefore one batch is sent alone until the leader has acknowledged one of this epoch, and again
   after a pause in which it may have forgotten the producer, and to a new leader
   (:meth:`PartitionSequences.may_pipeline`).
2. Offsets: between the last acknowledged record and the batch that follows there must be space for
   this batch. This detects a leader that forgot the producer in between.

Only both together count as an acknowledgement. Anything less begins a new epoch.
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

#: How long after an acknowledgement a leader is assumed to know the producer still. It forgets
#: after the broker's producer.id.expiration.ms, a day by default; after a pause this long, sending
#: one batch alone costs little.
KNOWN_SECONDS: Final = 10.0


class ProducerIdentity(NamedTuple):
    """A producer id with its epoch.

    Attributes:
        id: the id assigned by a broker; -1 for none.
        epoch: the epoch of the id; leaders reject batches of older epochs.
    """

    id: int = NONE
    epoch: int = NONE

    @property
    def is_valid(self) -> bool:
        return self.id != NONE


NO_IDENTITY: Final = ProducerIdentity()


class SequencedBatch(Protocol):
    """The part of :class:`.ProducerBatch` that is used here."""

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
    """Return the sequence that comes ``records`` later; the largest one is followed by 0."""
    return (sequence + records) & SEQUENCE_MAX


def last_sequence(batch: SequencedBatch) -> int:
    """Return the sequence of a batch's last record."""
    return after(batch.base_sequence, batch.record_count - 1)


class PartitionSequences:
    """The sequence numbers of one partition.

    Args:
        identity: the producer id and epoch of the numbers.

    Attributes:
        identity: the producer id and epoch of the numbers.
        next: the sequence of the next new batch.
        last_acked: the sequence of the last acknowledged record; -1 for none.
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
        # The last acknowledgement: when it arrived, from which leader, and the offset after it.
        self._acked_at = -math.inf
        self._leader_epoch = NONE
        self._end_offset = NONE
        self._in_flight: dict[SequencedBatch, None] = {}
        # Batches in flight that the leader reports as out of order: the responses to the batches
        # that follow decide whether they were written.
        self._refused: dict[SequencedBatch, None] = {}
        # Batches in flight that the leader must have, because it has one that follows.
        self._shown_written: dict[SequencedBatch, None] = {}

    @property
    def has_in_flight(self) -> bool:
        return bool(self._in_flight)

    @property
    def first_in_flight(self) -> SequencedBatch | None:
        """The first batch in flight that was not refused, on whose outcome the others depend."""
        for batch in self._in_flight:
            if batch not in self._refused:
                return batch
        return None

    def may_pipeline(self, leader_epoch: int, now: float) -> bool:
        """Return whether a new batch may be sent while others are in flight.

        Only a leader that knows this epoch of the producer may be sent one: another leader would
        accept a batch without the preceding one.

        Args:
            leader_epoch: the epoch of the leader that the batch would be sent to.
            now: the current time, in seconds of the loop's clock.
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
        """Whether all batches in flight are refused, so that no response can resolve them."""
        return bool(self._in_flight) and len(self._refused) == len(self._in_flight)

    def is_refused(self, batch: SequencedBatch) -> bool:
        return batch in self._refused

    def refuse(self, batch: SequencedBatch) -> None:
        """Record that the leader reported a batch as out of order: those that follow resolve it."""
        self._refused[batch] = None

    def take_written(self) -> list[SequencedBatch]:
        """Remove and return the refused batches that are shown to be written."""
        written = [each for each in self._refused if each in self._shown_written]
        for each in written:
            self.remove(each)
        return written

    def is_shown_written(self, batch: SequencedBatch) -> bool:
        """Whether the leader must have a batch, because it has acknowledged one that follows."""
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
        """Remove a batch that has its outcome. Returns whether it was in flight."""
        if batch not in self._in_flight:
            return False
        del self._in_flight[batch]
        self._refused.pop(batch, None)
        self._shown_written.pop(batch, None)
        return True

    def replace(self, batch: SequencedBatch, pieces: Iterable[SequencedBatch]) -> None:
        """Replace a batch that was split by its parts, which divide its numbers among them."""
        in_flight = list(self._in_flight)
        place = in_flight.index(batch)
        in_flight[place : place + 1] = pieces
        self._in_flight = dict.fromkeys(in_flight)

    def acked(self, batch: SequencedBatch, base_offset: int, now: float) -> None:
        """Record that the leader has a batch of the current epoch.

        Args:
            batch: the batch; it may have failed before.
            base_offset: the offset of the first record; -1 if the leader does not know it.
            now: the current time, in seconds of the loop's clock.
        """
        self._acked_at = now
        self._leader_epoch = batch.leader_epoch
        end_offset = base_offset + batch.record_count if base_offset >= 0 else NONE
        last = last_sequence(batch)
        if self.last_acked != NONE and not is_newer(last, self.last_acked):
            # A batch that follows this one was acknowledged before. In the log of a leader that had
            # forgotten the producer, this one comes after it and takes up offsets.
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
        """Whether the log has space for the records between the last acknowledged and this batch.

        More space is no contradiction, since other producers append to the partition as well.
        """
        if self._end_offset == NONE:
            return False
        missing = (batch.base_sequence - after(self.last_acked, 1)) & SEQUENCE_MAX
        return base_offset - self._end_offset >= missing

    def is_all_acked(self) -> bool:
        """Return whether the last numbered batch is acknowledged, so that no gap can follow."""
        return self.next == (0 if self.last_acked == NONE else after(self.last_acked, 1))

    def start_again(self, identity: ProducerIdentity) -> None:
        """Number from 0 in a new epoch, batches in flight included (KIP-360).

        None of these batches may be on the wire: the leader might have it with its old number.
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
    """Return whether a sequence comes after another; the numbers wrap around."""
    return 0 < (sequence - than) & SEQUENCE_MAX <= SEQUENCE_MAX // 2
