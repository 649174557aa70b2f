"""The deliveries of one batch call, created on access."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import overload

import trio

from ._delivery import Delivery, ProduceRequestResult, delivery_list, new_delivery


class Deliveries(Sequence[Delivery]):
    """The deliveries of the records of one call, in the order of the records.

    Args:
        timestamps: the timestamp of each record, in milliseconds; a single number applies to all
            records.

    Attributes:
        outcomes: the outcomes of the batches that contain the records, in order.
    """

    def __init__(self, timestamps: int | list[int]) -> None:
        self.outcomes: dict[ProduceRequestResult, None] = {}
        # A copy, since the caller may use the list again after the call.
        self._timestamps = timestamps if isinstance(timestamps, int) else list(timestamps)
        self._spans: list[tuple[ProduceRequestResult, int, int]] = []
        self._ends: list[int] = []

    def add(self, outcome: ProduceRequestResult, index: int, count: int) -> None:
        """Add consecutive records of one batch.

        Args:
            outcome: the outcome of the batch.
            index: the index of the first record in the batch.
            count: the number of records.
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

    def spans(self) -> Iterator[tuple[ProduceRequestResult, int, int]]:
        """Yield the outcome of each batch, the index of its first record, and the record count."""
        for (outcome, index, start), end in zip(self._spans, self._ends, strict=True):
            yield outcome, index, end - start

    @property
    def is_done(self) -> bool:
        """Whether the outcomes of all records are known."""
        return all(map(_is_decided, self.outcomes))

    async def wait(self) -> None:
        """Wait until the outcomes of all records are known; :meth:`failures` returns the errors.

        Cancellation: stops the wait; the records are still sent.
        """
        await trio.lowlevel.checkpoint()
        # The last batch first: all others are usually done by then and need no separate wait.
        for outcome in reversed(self.outcomes):
            if not outcome.is_done:
                await outcome.until_done()

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
            raise IndexError(f"delivery index out of range; there are {len(self)} deliveries")
        outcome, index, start = self._spans[bisect_right(self._ends, number)]
        return new_delivery(outcome, index + number - start, self._timestamp(number))

    def __iter__(self) -> Iterator[Delivery]:
        # Batch by batch: a generator function would double the cost of each delivery.
        return chain.from_iterable(
            delivery_list(outcome, index, start, end, self._timestamps)
            for (outcome, index, start), end in zip(self._spans, self._ends, strict=True)
        )

    def offsets(self) -> list[int]:
        """Return the offset of each record in its partition.

        Raises:
            trio.WouldBlock: the outcome of a record is not known yet.
            TrionetError: a record was not, or may not have been, written.
        """
        offsets: list[int] = []
        for outcome, index, count in self.spans():
            if outcome.is_plain:
                first = outcome.base_offset + index
                offsets += range(first, first + count)
            else:
                numbers = range(index, index + count)
                offsets += [new_delivery(outcome, each, 0).result().offset for each in numbers]
        return offsets

    def failures(self) -> list[tuple[int, Exception]]:
        """Return the index and error of each record that was not, or may not have been, written."""
        return [
            (start + place, error)
            for (outcome, index, start), end in zip(self._spans, self._ends, strict=True)
            if not outcome.is_plain
            for place in range(end - start)
            if (error := new_delivery(outcome, index + place, 0).error) is not None
        ]

    def __repr__(self) -> str:
        return f"<{len(self)} deliveries>"

    def _timestamp(self, number: int) -> int:
        return self._timestamps if isinstance(self._timestamps, int) else self._timestamps[number]


def _is_decided(outcome: ProduceRequestResult) -> bool:
    if outcome.parts is None:
        return outcome.is_done
    return all(_is_decided(part) for _, part in outcome.parts)
