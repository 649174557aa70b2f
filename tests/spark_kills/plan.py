"""What is killed when, drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

import attrs

KINDS: Final = ("worker", "driver", "broker")
_PAUSE_SECONDS_MAX: Final = 4.0
#: How often nobody waits for the job to go on before it is hit again.
_AT_ONCE: Final = 0.25


@attrs.frozen
class Kill:
    """One of them.

    Attributes:
        kind: what is killed.
        is_at_once: the pause begins at the one before; else when the job has gone on since.
        seconds: the pause.
    """

    kind: str
    is_at_once: bool
    seconds: float


def plan(seed: int, count: int, kinds: Sequence[str]) -> list[Kill]:
    """Successive seeds begin with successive kinds, so that none is left out."""
    rng = random.Random(f"{seed} kills")
    chosen = [kinds[seed % len(kinds)], *(rng.choice(kinds) for _ in range(count - 1))]
    return [
        Kill(kind, number > 0 and rng.random() < _AT_ONCE, rng.uniform(0, _PAUSE_SECONDS_MAX))
        for number, kind in enumerate(chosen)
    ]
