"""How long to wait after the n-th failure in a row.

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
    """Doubles a wait with each failure, up to a limit, and blurs it by a fifth.

    Many clients that lost the same broker would otherwise come back in the same instant. Nothing
    grows if the limit is not above the first wait.

    Attributes:
        first_seconds: after the first failure.
        seconds_max: the most, blurred or not.
    """

    first_seconds: float
    seconds_max: float

    def seconds(self, failures: int, chance: random.Random) -> float:
        """The wait after so many failures in a row; 0 is treated as the first.

        Args:
            failures: how often it failed, 1 or more.
            chance: what blurs it.
        """
        if self.seconds_max <= self.first_seconds:
            return self.first_seconds
        # Beyond this many doublings every sensible limit is reached, and 2 ** n stays a number.
        doublings = min(max(failures, 1) - 1, 62)
        wait = min(self.first_seconds * MULTIPLIER**doublings, self.seconds_max)
        return min(wait * chance.uniform(1 - JITTER, 1 + JITTER), self.seconds_max)
