"""What becomes of the first batches of each partition, from a seed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

import attrs

from support.produce_fates import (
    AFTER_APPEND,
    LOST_REQUEST,
    LOST_RESPONSE,
    PASSED,
    REFUSALS,
    Arrival,
    Fate,
    after_append,
    bit_flipped,
    refused,
)

#: So many batches of a partition meet more than the network itself.
BATCHES: Final = 5
#: So often one is disturbed, at most.
_ATTEMPTS_MAX: Final = 4
_RETRY_PASSES: Final = 0.5
_DELAYED: Final = 0.15
_DELAYS_SECONDS: Final = (0.005, 0.03, 0.2)

_STORY_LINES_MAX: Final = 40

Draw = Callable[[random.Random], Fate]

KINDS: Final[tuple[Draw, ...]] = (
    lambda _: PASSED,
    lambda rng: refused(rng.choice(REFUSALS)),
    lambda _: LOST_RESPONSE,
    lambda rng: bit_flipped(rng.randrange(1 << 20)),
    lambda _: LOST_REQUEST,
    lambda rng: after_append(rng.choice(AFTER_APPEND)),
)


def kind_of(combination: int, batch: int) -> Draw:
    """The kind of a batch's fate: a digit of the combination, the first batch's is the lowest."""
    digit: int = combination // len(KINDS) ** batch % len(KINDS)
    return KINDS[digit]


class Fates:
    """The fates of one seed.

    Args:
        seed: what is drawn depends on nothing else, whatever comes first.
        combinations: by partition a number, which stands for a combination of the kinds of fates of
            its first batches at their first attempt; other partitions have what is drawn.

    Attributes:
        counts: how often what was done.
    """

    def __init__(self, seed: int, combinations: Mapping[int, int]) -> None:
        self.counts: Counter[str] = Counter()
        self._seed = seed
        self._combinations = combinations
        self._met: dict[int, list[str]] = {}

    def __call__(self, arrival: Arrival) -> Fate:
        fate = self._drawn(arrival)
        self.counts[fate.text] += 1
        met = self._met.setdefault(arrival.partition, [])
        if len(met) < _STORY_LINES_MAX:
            met.append(_line(arrival, fate))
        return fate

    def story(self, partition: int) -> list[str]:
        """What the batches of a partition have met, in order, up to a number of lines."""
        return [f"partition {partition}, {line}" for line in self._met.get(partition, ())]

    def _drawn(self, arrival: Arrival) -> Fate:
        _, partition, batch, attempt = arrival
        rng = random.Random(f"{self._seed} {partition} {batch} {attempt}")
        if batch >= BATCHES or attempt >= _ATTEMPTS_MAX:
            return PASSED
        fate = self._kind(arrival, rng)(rng)
        if rng.random() < _DELAYED:
            fate = attrs.evolve(fate, delay_seconds=rng.choice(_DELAYS_SECONDS))
        return fate

    def _kind(self, arrival: Arrival, rng: random.Random) -> Draw:
        combination = self._combinations.get(arrival.partition)
        if arrival.attempt == 0 and combination is not None:
            return kind_of(combination, arrival.batch)
        return KINDS[0] if rng.random() < _RETRY_PASSES else rng.choice(KINDS)


def _line(arrival: Arrival, fate: Fate) -> str:
    line = f"batch {arrival.batch}, attempt {arrival.attempt}: {fate.text}"
    return f"{line} after {fate.delay_seconds * 1000:.0f} ms" if fate.delay_seconds else line
