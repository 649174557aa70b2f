"""Exponential backoff with jitter.

(Kafka: ExponentialBackoff; KIP-144, KIP-580.)
"""

from __future__ import annotations

import random
from typing import Final

import attrs

MULTIPLIER: Final = 2.0
JITTER: Final = 0.2


@attrs.frozen
class ExponentialBackoff:
    """A wait that doubles with each consecutive failure, up to a maximum, with 20 % jitter.

    Without jitter, all clients that lost the same broker would reconnect at the same instant. If
    the maximum does not exceed the first wait, every wait is equal to the first, without jitter.

    Attributes:
        first_seconds: the wait after the first failure.
        seconds_max: the maximum wait, jitter included.
    """

    first_seconds: float
    seconds_max: float

    def seconds(self, failures: int, rng: random.Random) -> float:
        """Return the wait after ``failures`` consecutive failures.

        Args:
            failures: the number of consecutive failures; 0 is treated as 1.
            rng: the source of the jitter.
        """
        if self.seconds_max <= self.first_seconds:
            return self.first_seconds
        # 62 doublings exceed every sensible maximum; 2.0 ** n must not overflow.
        doublings = min(max(failures, 1) - 1, 62)
        wait = min(self.first_seconds * MULTIPLIER**doublings, self.seconds_max)
        return min(wait * rng.uniform(1 - JITTER, 1 + JITTER), self.seconds_max)
