"""What a producer was given and what it said of it, compared with the log."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from trionet import TrionetError
from trionet.client.producer._delivery import Delivery, RecordMetadata
from trionet.errors import RecordWithdrawnError
from trionet.testing import Record

UNKNOWN = -1


class Violation(AssertionError):
    """A rule does not hold."""


class Ledger:
    """The records of one producer for one topic.

    Args:
        name: what its values begin with; no other producer's values do.
        is_idempotent: each record is there once at most, and in the order of sending. Without,
            only what was acknowledged must be there.
    """

    def __init__(self, name: bytes = b"", *, is_idempotent: bool = True) -> None:
        self.name = name
        self._is_idempotent = is_idempotent
        self._sent: dict[bytes, int] = {}
        self._acknowledged: dict[bytes, RecordMetadata] = {}
        self._deliveries: list[tuple[Delivery, bytes]] = []
        self._too_large: list[tuple[Delivery, bytes]] = []

    def next(self) -> bytes:
        """Another value."""
        value = b"%s%d" % (self.name, len(self._sent))
        self._sent[value] = len(self._sent)
        return value

    def acknowledged(self, value: bytes, metadata: RecordMetadata) -> None:
        """Note that ``send`` has returned."""
        self._acknowledged[value] = metadata

    def taken(self, value: bytes, delivery: Delivery) -> None:
        """Note that a record is on its way."""
        self._deliveries.append((delivery, value))

    def taken_too_large(self, value: bytes, delivery: Delivery) -> None:
        """Note that a record is on its way that its topic does not take."""
        self._too_large.append((delivery, value))

    def check_taken(self) -> None:
        """After a flush: everything that was taken is written."""
        for delivery, value in self._deliveries:
            self.acknowledged(value, delivery.result())

    def check_log(self, records: Iterable[Record]) -> None:
        """After the end of the producer's block.

        Args:
            records: all of the topic, in the order of partitions and offsets.

        Raises:
            Violation: a rule does not hold.
        """
        places = self._places(records)
        if self._is_idempotent:
            self._check_order(places)
        self._check_deliveries(places)
        for delivery, value in self._too_large:
            if delivery.error is None:
                raise Violation(f"{value!r} is too large, and was not refused")
            if value in places:
                raise Violation(f"{value!r} is too large, and is there")
        for value, metadata in self._acknowledged.items():
            there = places.get(value, [])
            place = metadata.partition, metadata.offset
            is_there = place in there or (
                metadata.offset == UNKNOWN and metadata.partition in dict(there)
            )
            if not is_there:
                raise Violation(
                    f"{value!r} was acknowledged at {metadata}, it is {there or 'nowhere'}"
                )

    def _places(self, records: Iterable[Record]) -> dict[bytes, list[tuple[int, int]]]:
        """The partitions and offsets of each value in the log, in the order of the log."""
        places: dict[bytes, list[tuple[int, int]]] = defaultdict(list)
        for record in records:
            value = record.value
            if value is not None and value.startswith(self.name):
                if value not in self._sent:
                    raise Violation(f"{value!r} was never sent")
                places[value].append((record.partition, record.offset))
        return places

    def _check_order(self, places: dict[bytes, list[tuple[int, int]]]) -> None:
        last: dict[int, int] = {}
        for value, there in places.items():
            if len(there) > 1:
                raise Violation(f"{value!r} is there {len(there)} times")
            [(partition, _)] = there
            if self._sent[value] < last.get(partition, -1):
                raise Violation(f"{value!r} is behind what was sent after it")
            last[partition] = self._sent[value]

    def _check_deliveries(self, places: dict[bytes, list[tuple[int, int]]]) -> None:
        for delivery, value in self._deliveries:
            if not delivery.is_done:
                raise Violation(f"what became of {value!r} is not decided")
            try:
                self.acknowledged(value, delivery.result())
            except RecordWithdrawnError as error:
                if value in places:
                    raise Violation(f"{value!r} was withdrawn, and is there") from error
            except TrionetError:
                pass  # it may be there or not
