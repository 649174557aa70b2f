"""Record values: random ones of a fixed size, or those in a file, used repeatedly."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

#: Limits on the pool of random values, which is generated before the run (at least one value).
POOL_BYTES: Final = 1 << 20
POOL_VALUES: Final = 10_000
#: Fixed, so that runs can be compared, as in Kafka's tool.
SEED: Final = 0
_LETTERS: Final = bytes(ord("A") + number % 26 for number in range(256))


class Payloads:
    """Cycles through values.

    Args:
        values: the values, at least one.
    """

    def __init__(self, values: Sequence[bytes]) -> None:
        self._values = list(values)
        self._sizes = [len(each) for each in values]
        self._next = 0

    @property
    def mean_bytes(self) -> int:
        """The mean size of a value in bytes, at least 1."""
        return max(1, sum(self._sizes) // len(self._sizes))

    def take(self, count: int) -> tuple[list[bytes], int]:
        """Return the next values and their total size."""
        values: list[bytes] = []
        size = 0
        while len(values) < count:
            end = min(self._next + count - len(values), len(self._values))
            values += self._values[self._next : end]
            size += sum(self._sizes[self._next : end])
            self._next = end % len(self._values)
        return values, size


def random_payloads(size: int) -> Payloads:
    """Return random values that consist of capital letters, as Kafka's tool does.

    Args:
        size: the size of each value in bytes.
    """
    rng = random.Random(SEED)  # noqa: S311 - nothing secret
    count = max(1, min(POOL_VALUES, POOL_BYTES // max(size, 1)))
    letters = rng.randbytes(size * count).translate(_LETTERS)
    return Payloads([letters[number * size : (number + 1) * size] for number in range(count)])


def payloads_of(content: bytes, delimiter: bytes) -> Payloads | None:
    """Split the content of a file into values; return None if there are none.

    Empty values are skipped, as in Kafka's tool.
    """
    values = [each for each in content.split(delimiter) if each]
    return Payloads(values) if values else None
