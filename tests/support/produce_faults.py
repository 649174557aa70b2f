"""What goes wrong with Produce requests, drawn from a seed: refused, lost, or stored and denied.

The sequence that a producer meets at a partition begins with its first batches there, since a
leader knows nothing of them yet: it takes any sequence number first (Kafka:
ProducerAppendInfo.checkSequence), so that a batch may be stored though the one before it is not.
Everything here is what a real leader does. No response says that a batch was not stored when a
later attempt of it could be refused for that reason, and none says that it was when it was not.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from trionet.testing import Fault
from trionet.testing.faults._faults import Faults

PlantFault = Callable[..., Fault]
"""Adds one fault; takes the arguments that say which requests it meets."""

#: Errors of a batch that the leader has not appended.
REFUSALS: Final = (
    "NOT_LEADER_OR_FOLLOWER",
    "LEADER_NOT_AVAILABLE",
    "NOT_ENOUGH_REPLICAS",
    "CORRUPT_MESSAGE",
    "UNKNOWN_TOPIC_OR_PARTITION",
)
#: Errors of a batch that is in the leader's log all the same.
AFTER_APPEND: Final = ("NOT_ENOUGH_REPLICAS_AFTER_APPEND", "REQUEST_TIMED_OUT")

#: One request meets no fault.
PASS: Final = "pass"
FLIPPED_BIT: Final = "flipped bit"
REQUEST_LOST: Final = "request lost"
REQUEST_RESET: Final = "request lost by a reset"
RESPONSE_LOST: Final = "response lost"
RESPONSE_RESET: Final = "response lost by a reset"
RESPONSE_CUT: Final = "response cut"
NO_RESPONSE: Final = "no response"
LATE: Final = "late"
#: Long enough for a request timeout of a second to pass.
LATE_SECONDS: Final = 1.2

#: How often each outcome of a request is drawn, of those that are not PASS.
WEIGHTS: Final = {
    **dict.fromkeys(REFUSALS, 2),
    **dict.fromkeys(AFTER_APPEND, 2),
    FLIPPED_BIT: 3,
    REQUEST_LOST: 2,
    REQUEST_RESET: 1,
    RESPONSE_LOST: 5,
    RESPONSE_RESET: 2,
    RESPONSE_CUT: 2,
    NO_RESPONSE: 1,
    LATE: 2,
}
#: The longest sequence that is drawn.
LENGTH_MAX: Final = 8


def draw(rng: random.Random) -> list[str]:
    """A sequence of what happens to one request after the other; those after it pass."""
    length = rng.choice((0, 1, 2, 2, 3, 3, 4, LENGTH_MAX))
    share = rng.choice((0.5, 0.8, 1.0))
    names, weights = list(WEIGHTS), list(WEIGHTS.values())
    return [rng.choices(names, weights)[0] if rng.random() < share else PASS for _ in range(length)]


def plant(faults: Faults, outcomes: Sequence[str], **meets: Any) -> list[Fault]:
    """Have requests meet these, in this order.

    Args:
        faults: of a broker.
        outcomes: a name of :data:`WEIGHTS` for each request, or :data:`PASS`.
        meets: which requests count, as the methods of ``faults`` take it.
    """
    planted = []
    for number, name in enumerate(outcomes):
        if name != PASS:
            # A fault that is over passes requests on to those after it, and each of these counts
            # for itself how many pass.
            passed = outcomes[:number].count(PASS)
            planted.append(_adding(faults, name)(skip=passed, **meets))
    return planted


def _adding(faults: Faults, name: str) -> PlantFault:
    if name in REFUSALS:
        return partial(faults.fail, "Produce", name)
    if name in AFTER_APPEND:
        return partial(faults.fail, "Produce", name, executed=True)
    return {
        FLIPPED_BIT: partial(faults.corrupt, "Produce"),
        REQUEST_LOST: partial(faults.close, "Produce"),
        REQUEST_RESET: partial(faults.close, "Produce", reset=True),
        RESPONSE_LOST: partial(faults.close, "Produce", executed=True),
        RESPONSE_RESET: partial(faults.close, "Produce", executed=True, reset=True),
        RESPONSE_CUT: partial(faults.cut, "Produce"),
        NO_RESPONSE: partial(faults.swallow, "Produce", executed=True),
        LATE: partial(faults.delay, "Produce", LATE_SECONDS),
    }[name]
