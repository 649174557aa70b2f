"""Records that were read and are to be sent, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import attrs

from ._splitting import InputError

#: What a consumer gives for a record without a timestamp (Kafka: RecordBatch.NO_TIMESTAMP).
NO_TIMESTAMP: Final = -1

Headers = Sequence[tuple[str, bytes | None]]


@attrs.frozen(kw_only=True)
class Taken:
    """Records for one topic, in their order.

    Attributes:
        numbers: their places among all that were read, from 1.
        topic: None for the one of the command line.
        partition: None for the one of the command line.
        values: None for null.
        keys: None for null; without, none has one.
        headers: without, none has any.
        timestamps: in milliseconds since 1970; without, and of one that has none, it is now.
    """

    numbers: Sequence[int]
    topic: str | None = None
    partition: int | None = None
    values: list[bytes | None]
    keys: list[bytes | None] | None = None
    headers: list[Headers] | None = None
    timestamps: list[int] | None = None

    def some(self, start: int, end: int) -> Taken:
        """Those from one place up to another."""
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
    """Makes records of input in pieces of any size.

    Attributes:
        can_go_on: whether what comes behind something that is no record can be read.
    """

    can_go_on: bool

    def feed(self, data: bytes) -> list[Taken]:
        """What is complete now, up to what is no record."""

    def end(self) -> list[Taken]:
        """What is complete since nothing follows."""

    def take_error(self) -> InputError | None:
        """What is no record; feeding nothing goes on behind it, where that can be done."""

    @property
    def kept(self) -> int:
        """How many bytes wait for the rest of their record."""
