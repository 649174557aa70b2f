"""The numbers of one partition's batches, by which its leader knows duplicates and gaps (KIP-98).

(Kafka: TxnPartitionEntry.) Pure. A batch has the sequence of its first record; the next one's
follows on its last. The batches of a partition that have numbers and no outcome are *in flight*
here, in the order of their numbers, whether they are on their way or wait to be sent again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, Protocol

from ..topic_partition import TopicPartition

SEQUENCE_MAX: Final = 2**31 - 1
EPOCH_MAX: Final = 2**15 - 1
NONE: Final = -1


class ProducerIdentity(NamedTuple):
    """Whom a partition's leader takes batches from.

    Attributes:
        id: given by a broker; -1 for none.
        epoch: counts the lives of an id; of an older one nothing is taken any more.
    """

    id: int = NONE
    epoch: int = NONE

    @property
    def is_valid(self) -> bool:
        return self.id != NONE


NO_IDENTITY: Final = ProducerIdentity()


class SequencedBatch(Protocol):
    """What is needed here of a :class:`.ProducerBatch`."""

    @property
    def topic_partition(self) -> TopicPartition: ...

    @property
    def record_count(self) -> int: ...

    @property
    def base_sequence(self) -> int: ...

    @property
    def attempts(self) -> int: ...

    @property
    def is_split(self) -> bool: ...

    @property
    def producer_id(self) -> int: ...

    @property
    def producer_epoch(self) -> int: ...

    def set_producer_state(self, producer_id: int, epoch: int, base_sequence: int) -> None: ...


def after(sequence: int, records: int) -> int:
    """The sequence that comes so many records later; after the largest comes 0."""
    return (sequence + records) & SEQUENCE_MAX


def last_sequence(batch: SequencedBatch) -> int:
    """The sequence of a batch's last record."""
    return after(batch.base_sequence, batch.record_count - 1)


class PartitionSequences:
    """The numbers of one partition.

    Args:
        identity: whose they are.

    Attributes:
        identity: whose they are.
        next: the sequence of the next new batch.
        last_acked: the sequence of the last record that was acknowledged; -1 for none.
        unresolved: while it is not known whether batches that were given up were written: the
            sequence that follows them; None otherwise.
    """

    __slots__ = (
        "_in_flight",
        "_refused",
        "identity",
        "last_acked",
        "next",
        "unresolved",
    )

    def __init__(self, identity: ProducerIdentity) -> None:
        self.identity = identity
        self.next = 0
        self.last_acked = NONE
        self.unresolved: int | None = None
        # With whether each was numbered anew since it was last sent.
        self._in_flight: dict[SequencedBatch, bool] = {}
        # Of these, those that the leader finds out of order, since one of them was tried again.
        self._refused: dict[SequencedBatch, None] = {}

    @property
    def has_in_flight(self) -> bool:
        return bool(self._in_flight)

    @property
    def first_in_flight(self) -> SequencedBatch | None:
        """The one whose outcome the others depend on, of those that are not refused."""
        for batch in self._in_flight:
            if batch not in self._refused:
                return batch
        return None

    @property
    def has_refused(self) -> bool:
        return bool(self._refused)

    def is_refused(self, batch: SequencedBatch) -> bool:
        return batch in self._refused

    def refuse(self, batch: SequencedBatch) -> None:
        """A batch is out of order at its leader: the next one in flight will tell on which side."""
        self._refused[batch] = None

    def take_written(self, batch: SequencedBatch) -> list[SequencedBatch]:
        """The refused ones before a batch that was written: the leader has them, then."""
        written = [
            each for each in self._refused if is_newer(batch.base_sequence, each.base_sequence)
        ]
        self._refused.clear()
        for each in written:
            del self._in_flight[each]
        return written

    def assign(self, batch: SequencedBatch) -> None:
        """Give a new batch its number."""
        batch.set_producer_state(self.identity.id, self.identity.epoch, self.next)
        self.next = after(self.next, batch.record_count)
        self._in_flight[batch] = False

    def sent_again(self, batch: SequencedBatch) -> None:
        """A batch is about to be sent with the number that it has."""
        if batch in self._in_flight:
            self._in_flight[batch] = False

    def is_renumbered(self, batch: SequencedBatch) -> bool:
        """Whether a batch was numbered anew since it was sent: its answer is to another number."""
        return self._in_flight.get(batch, False)

    def is_of_now(self, batch: SequencedBatch) -> bool:
        """Whether a batch has its number from the present life."""
        return (batch.producer_id, batch.producer_epoch) == self.identity

    def remove(self, batch: SequencedBatch) -> bool:
        """A batch has its outcome; whether it was in flight."""
        if batch not in self._in_flight:
            return False
        del self._in_flight[batch]
        self._refused.pop(batch, None)
        return True

    def replace(self, batch: SequencedBatch, pieces: Iterable[SequencedBatch]) -> None:
        """A batch was split; its pieces take its place, and its numbers between them."""
        in_flight = self._in_flight
        self._in_flight = {}
        for each, is_renumbered in in_flight.items():
            if each is not batch:
                self._in_flight[each] = is_renumbered
                continue
            for piece in pieces:
                self._in_flight[piece] = False

    def acked(self, batch: SequencedBatch) -> None:
        """A batch was written."""
        last = last_sequence(batch)
        if self.last_acked == NONE or is_newer(last, self.last_acked):
            self.last_acked = last

    def is_next(self, sequence: int) -> bool:
        """Whether a sequence is the one that the leader waits for."""
        return sequence == (0 if self.last_acked == NONE else after(self.last_acked, 1))

    def is_overtaken(self, batch: SequencedBatch) -> bool:
        """Whether a piece of a batch that was too large comes after what was behind that one.

        A leader that knows nothing of a producer takes any number first (Kafka:
        ProducerAppendInfo.checkSequence): if it refuses the first batch, it takes the second one.
        """
        if not batch.is_split or self.last_acked == NONE:
            return False
        return not is_newer(batch.base_sequence, self.last_acked)

    def start_again(self, identity: ProducerIdentity) -> None:
        """Number from 0 in a new life, what is in flight included (KIP-360)."""
        self.identity = identity
        self.next = 0
        self.last_acked = NONE
        self.unresolved = None
        self._refused.clear()
        for batch in self._in_flight:
            batch.set_producer_state(identity.id, identity.epoch, self.next)
            self.next = after(self.next, batch.record_count)
            self._in_flight[batch] = True

    def given_up(self, batch: SequencedBatch) -> None:
        """A batch that may have been written is not tried again."""
        following = after(batch.base_sequence, batch.record_count)
        if self.unresolved is None or is_newer(following, self.unresolved):
            self.unresolved = following


def is_newer(sequence: int, than: int) -> bool:
    """Whether a sequence comes after another, on the circle that they run on."""
    return 0 < (sequence - than) & SEQUENCE_MAX <= SEQUENCE_MAX // 2
