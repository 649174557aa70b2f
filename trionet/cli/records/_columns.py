"""Records to send, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import attrs

from ._splitting import InputError

#: Stands for a missing timestamp (Kafka: RecordBatch.NO_TIMESTAMP).
NO_TIMESTAMP: Final = -1

Headers = Sequence[tuple[str, bytes | None]]


@attrs.frozen(kw_only=True)
class RecordColumns:
    """Records for one topic, in order.

    Attributes:
        numbers: the numbers of the records in the input, from 1.
        topic: the topic; None for the topic given on the command line.
        partition: the partition; None for the partition given on the command line.
        values: the values, where a None element is null.
        keys: the keys, where a None element is null; None if no record has a key.
        headers: the headers of each record; None if no record has headers.
        timestamps: the timestamps in milliseconds since the epoch, where -1 means the current time;
            None if all are the current time.
    """

    numbers: Sequence[int]
    topic: str | None = None
    partition: int | None = None
    values: list[bytes | None]
    keys: list[bytes | None] | None = None
    headers: list[Headers] | None = None
    timestamps: list[int] | None = None

    def some(self, start: int, end: int) -> RecordColumns:
        """Return the records from index ``start`` to index ``end`` (exclusive)."""
        if start == 0 and end >= len(self.values):
            return self
        return attrs.evolve(
            self,
            numbers=self.numbers[start:end],
            values=self.values[start:end],
            keys=self.keys and self.keys[start:end],
            headers=self.headers and self.headers[start:end],
            timestamps=self.timestamps and self.timestamps[start:end],
        )


class Input(Protocol):
    """Parses records from input that arrives in chunks of any size.

    Attributes:
        can_go_on: whether parsing can continue after an invalid record.
    """

    can_go_on: bool

    def feed(self, data: bytes) -> list[RecordColumns]:
        """Add a chunk, and return the completed records up to the first invalid record."""

    def end(self) -> list[RecordColumns]:
        """Return the records completed by the end of the input."""

    def take_error(self) -> InputError | None:
        """Remove and return the next error. ``feed(b"")`` continues after the error if possible."""

    @property
    def kept(self) -> int:
        """The number of buffered bytes of an incomplete record."""
