"""What must be known of a log's records and producers, whatever the log has been through.

The rules of Kafka's producers and transactions once more, as short as can be. The model knows the
whole history, of which a log keeps what was not deleted, and no file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs

BATCHES_KEPT = 5

DUPLICATE = "duplicate"
STORED = "stored"
OUT_OF_ORDER = "out of order"


@attrs.frozen
class Sent:
    """A batch of a producer, as it is known to its partition."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int


@attrs.frozen
class Producer:
    """What is known of a producer.

    Attributes:
        epoch: of its last batch or marker.
        batches: the last ones of this epoch, oldest first.
        timestamp: of the last batch or marker.
        first_offset: that of its open transaction; -1 if none is.
        before: the batches that were forgotten with an expired producer that came back; a start
            that finds them in the log may know them.
    """

    epoch: int
    batches: tuple[Sent, ...] = ()
    timestamp: int = -1
    first_offset: int = -1
    before: Sequence[Sent] = ()

    @property
    def next_sequence(self) -> int:
        return self.batches[-1].last_sequence + 1 if self.batches else 0


@attrs.frozen
class Stored:
    """A batch or a marker in the log."""

    offset: int
    timestamp: int
    records: tuple[tuple[bytes, bytes], ...] = ()
    producer_id: int = -1
    epoch: int = -1
    sequence: int = -1
    is_transactional: bool = False
    is_commit: bool | None = None
    """Of a marker."""

    @property
    def end_offset(self) -> int:
        return self.offset + max(1, len(self.records))


@attrs.frozen
class Aborted:
    producer_id: int
    first_offset: int
    last_offset: int


class Model:
    """One log as it must be.

    Args:
        expiration_ms: when a producer that does nothing is forgotten.

    Attributes:
        history: all that was ever stored.
        producers: what is known of each.
        start_offset: the log's.
        aborted: the transactions.
        not_indexed: the offsets of the markers of those that a log does not know of, which had
            forgotten them.
    """

    def __init__(self, expiration_ms: int) -> None:
        self._expiration_ms = expiration_ms
        self.history: list[Stored] = []
        self.producers: dict[int, Producer] = {}
        self.start_offset = 0
        self.aborted: list[Aborted] = []
        self.not_indexed: set[int] = set()
        # What has made of the producers what they are, since they were known for certain.
        self._since: list[Stored | int] = []
        self._known: dict[int, Producer] = {}

    @property
    def end_offset(self) -> int:
        return self.history[-1].end_offset if self.history else 0

    @property
    def last_stable_offset(self) -> int:
        opened = [each.first_offset for each in self.producers.values() if each.first_offset >= 0]
        return max(self.start_offset, min([self.end_offset, *opened]))

    def stored_by(self, producer_id: int, epoch: int, up_to: int) -> list[Sent]:
        """What a producer has ever stored below an offset."""
        return [
            sent_in(each)
            for each in self.history
            if each.offset < up_to
            and (each.producer_id, each.epoch) == (producer_id, epoch)
            and each.is_commit is None
        ]

    # What happens

    def verdict(self, batch: Stored, version: int) -> tuple[str, int]:
        """What becomes of a batch, and the offset that is responded with.

        Args:
            batch: with the offset that it would get.
            version: of the transaction.
        """
        known = self.producers.get(batch.producer_id)
        if known is None:
            is_late = batch.is_transactional and version >= 2 and batch.sequence > 0
            return (OUT_OF_ORDER, -1) if is_late else (STORED, batch.offset)
        last = batch.sequence + len(batch.records) - 1
        if known.epoch == batch.epoch:
            for each in known.batches:
                if (each.first_sequence, each.last_sequence) == (batch.sequence, last):
                    return DUPLICATE, each.first_offset
        expected = known.next_sequence if known.epoch == batch.epoch else 0
        return (STORED, batch.offset) if batch.sequence == expected else (OUT_OF_ORDER, -1)

    def store(self, batch: Stored) -> None:
        """A batch or a marker was appended."""
        assert batch.offset == self.end_offset
        self.history.append(batch)
        self._since.append(batch)
        self._follow(batch)

    def expire(self, now_ms: int) -> None:
        """Forget the producers that have done nothing for long."""
        self._since.append(now_ms)
        self._expire(now_ms)

    def delete_before(self, offset: int) -> None:
        self.start_offset = max(self.start_offset, offset)

    # What a crash leaves

    def cut(self, end_offset: int, lost: set[int]) -> None:
        """The batches from here on are lost, and some others, since they were not on the disk.

        Args:
            end_offset: where the log ends now.
            lost: the offsets of the others.
        """

        def is_there(batch: Stored) -> bool:
            return batch.end_offset <= end_offset and batch.offset not in lost

        self.history = list(filter(is_there, self.history))
        self.aborted = [
            each
            for each in self.aborted
            if each.last_offset < end_offset and each.last_offset not in lost
        ]
        self.producers = dict(self._known)
        aborted = self.aborted
        since, self._since = self._since, []
        for each in since:
            if isinstance(each, int):
                self.expire(each)
            elif is_there(each):
                self._since.append(each)
                self._follow(each)
        self.aborted = aborted

    def begin_at(self, offset: int) -> None:
        """The log begins anew at an offset, if what was before it is lost."""
        if self.end_offset < offset:
            self.history.append(Stored(offset - 1, -1))

    def know(self, producers: dict[int, Producer], aborted: Mapping[int, int]) -> None:
        """From now on, this is known of the producers, and no more.

        Args:
            producers: as the log knows them.
            aborted: the first offset of each aborted transaction that its indexes have, by that of
                the marker.
        """
        self.producers = {}
        for producer_id, each in producers.items():
            first = each.batches[0].first_offset if each.batches else self.end_offset
            before = self.stored_by(producer_id, each.epoch, first)
            self.producers[producer_id] = attrs.evolve(each, before=before)
        self._known, self._since = dict(self.producers), []
        self.not_indexed.update({each.last_offset for each in self.aborted} - set(aborted))
        self.aborted = [
            attrs.evolve(each, first_offset=aborted.get(each.last_offset, each.first_offset))
            for each in self.aborted
        ]

    # The rules

    def _follow(self, batch: Stored) -> None:
        producer_id = batch.producer_id
        if producer_id < 0:
            return
        known = self.producers.get(producer_id)
        if known is None:
            before = self.stored_by(producer_id, batch.epoch, batch.offset)
            known = Producer(batch.epoch, before=before)
        elif known.epoch != batch.epoch:
            known = attrs.evolve(known, epoch=batch.epoch, batches=(), before=())
        first_offset, batches = known.first_offset, known.batches
        if batch.is_commit is not None:
            if first_offset >= 0 and not batch.is_commit:
                self.aborted.append(Aborted(producer_id, first_offset, batch.offset))
            first_offset = -1
        else:
            if batch.is_transactional and first_offset < 0:
                first_offset = batch.offset
            batches = (*batches, sent_in(batch))[-BATCHES_KEPT:]
        self.producers[producer_id] = attrs.evolve(
            known, batches=batches, timestamp=batch.timestamp, first_offset=first_offset
        )

    def _expire(self, now_ms: int) -> None:
        for producer_id, known in list(self.producers.items()):
            if known.timestamp <= now_ms - self._expiration_ms and known.first_offset < 0:
                del self.producers[producer_id]


def sent_in(batch: Stored) -> Sent:
    last_sequence = batch.sequence + len(batch.records) - 1
    return Sent(batch.sequence, last_sequence, batch.offset, batch.end_offset - 1)


def records_of(batches: Iterable[Stored]) -> dict[int, tuple[bytes, bytes]]:
    """The records by offset."""
    return {
        each.offset + number: record
        for each in batches
        for number, record in enumerate(each.records)
    }
