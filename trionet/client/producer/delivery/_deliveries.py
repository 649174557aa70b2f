"""The deliveries of records that were sent together: made one by one, when somebody looks."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import overload

from ._delivery import Delivery, delivery_list
from ._produce_request_result import BatchOutcome


class Deliveries(Sequence[Delivery]):
    """As many as records were taken, in their order.

    Args:
        timestamps: of the records, in milliseconds; one number is every record's.

    Attributes:
        outcomes: of the batches that have the records, in order.
    """

    def __init__(self, timestamps: int | list[int]) -> None:
        self.outcomes: dict[BatchOutcome, None] = {}
        self._timestamps = timestamps
        self._spans: list[tuple[BatchOutcome, int, int]] = []
        self._ends: list[int] = []

    def add(self, outcome: BatchOutcome, index: int, count: int) -> None:
        """The next records are in a batch.

        Args:
            outcome: of the batch.
            index: the number of the first of them there.
            count: how many.
        """
        start = len(self)
        if self._spans:
            last, first, begun = self._spans[-1]
            if last is outcome and first + start - begun == index:
                self._ends[-1] = start + count
                return
        self.outcomes[outcome] = None
        self._spans.append((outcome, index, start))
        self._ends.append(start + count)

    def spans(self) -> Iterator[tuple[BatchOutcome, int, int]]:
        """Batches, the numbers of the first records there, and how many there are; in order."""
        for (outcome, index, start), end in zip(self._spans, self._ends, strict=True):
            yield outcome, index, end - start

    @property
    def is_done(self) -> bool:
        """Whether it is decided what became of all of them."""
        return all(map(_is_decided, self.outcomes))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, number: int, /) -> Delivery: ...
    @overload
    def __getitem__(self, numbers: slice, /) -> list[Delivery]: ...
    def __getitem__(self, number: int | slice, /) -> Delivery | list[Delivery]:
        if isinstance(number, slice):
            return [self[each] for each in range(*number.indices(len(self)))]
        if number < 0:
            number += len(self)
        if not 0 <= number < len(self):
            raise IndexError(f"there are {len(self)} deliveries")
        outcome, index, start = self._spans[bisect_right(self._ends, number)]
        return Delivery(outcome, index + number - start, self._timestamp(number))

    def __iter__(self) -> Iterator[Delivery]:
        # Batch by batch: a generator of ours would cost as much again for each delivery.
        return chain.from_iterable(
            delivery_list(outcome, index, start, end, self._timestamps)
            for (outcome, index, start), end in zip(self._spans, self._ends, strict=True)
        )

    def offsets(self) -> list[int]:
        """The offset of each record, in its partition.

        Raises:
            trio.WouldBlock: of some it is not decided yet what became of them.
            TrionetError: one was not written, or nobody knows whether it was.
        """
        offsets: list[int] = []
        for outcome, index, count in self.spans():
            if outcome.is_plain:
                first = outcome.base_offset + index
                offsets += range(first, first + count)
            else:
                numbers = range(index, index + count)
                offsets += [Delivery(outcome, each, 0).result().offset for each in numbers]
        return offsets

    def failures(self) -> list[tuple[int, Exception]]:
        """The records that were not written, or of which nobody knows: which, and why."""
        return [
            (start + place, error)
            for (outcome, index, start), end in zip(self._spans, self._ends, strict=True)
            if not outcome.is_plain
            for place in range(end - start)
            if (error := Delivery(outcome, index + place, 0).error) is not None
        ]

    def __repr__(self) -> str:
        return f"<{len(self)} deliveries>"

    def _timestamp(self, number: int) -> int:
        return self._timestamps if isinstance(self._timestamps, int) else self._timestamps[number]


def _is_decided(outcome: BatchOutcome) -> bool:
    if outcome.parts is None:
        return outcome.is_done
    return all(_is_decided(part) for _, part in outcome.parts)
