"""What is written: random values of one size, or the lines of a file, again and again. Pure."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

#: Random values are made once, before the run: so many bytes or values of them, or one value.
POOL_BYTES: Final = 1 << 20
POOL_VALUES: Final = 10_000
#: The same ones in each run, so that runs can be compared; Kafka's tool does so, too.
SEED: Final = 0
_LETTERS: Final = bytes(ord("A") + number % 26 for number in range(256))


class Payloads:
    """Values in turns.

    Args:
        values: at least one.
    """

    def __init__(self, values: Sequence[bytes]) -> None:
        self._values = list(values)
        self._sizes = [len(each) for each in values]
        self._next = 0

    @property
    def mean_bytes(self) -> int:
        """How large a value is in the mean, at least 1."""
        return max(1, sum(self._sizes) // len(self._sizes))

    def take(self, count: int) -> tuple[list[bytes], int]:
        """The next values, and how many bytes they are."""
        values: list[bytes] = []
        size = 0
        while len(values) < count:
            end = min(self._next + count - len(values), len(self._values))
            values += self._values[self._next : end]
            size += sum(self._sizes[self._next : end])
            self._next = end % len(self._values)
        return values, size


def random_payloads(size: int) -> Payloads:
    """Values of capital letters, as Kafka's tool has them.

    Args:
        size: of each, in bytes.
    """
    chance = random.Random(SEED)  # noqa: S311 - nothing secret
    count = max(1, min(POOL_VALUES, POOL_BYTES // max(size, 1)))
    letters = chance.randbytes(size * count).translate(_LETTERS)
    return Payloads([letters[number * size : (number + 1) * size] for number in range(count)])


def payloads_of(content: bytes, delimiter: bytes) -> Payloads | None:
    """The values that a file has between delimiters; None if there are none.

    Empty ones are left out, as Kafka's tool does it.
    """
    values = [each for each in content.split(delimiter) if each]
    return Payloads(values) if values else None
