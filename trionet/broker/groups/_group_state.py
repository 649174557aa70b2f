"""The states of a classic group, and what a broker's configuration says of all its groups."""

from __future__ import annotations

import enum
from collections.abc import Callable

import attrs


class GroupState(enum.Enum):
    """The state of a group, by the name that Kafka's tools show."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


@attrs.frozen
class GroupSettings:
    """What a broker's configuration says of every group.

    Attributes:
        initial_delay: seconds to wait for more members before the first generation of an empty
            group (``group.initial.rebalance.delay.ms``).
        members_max: ``group.max.size``.
        make_member_id: a new id that begins with what it is given.
    """

    initial_delay: float
    members_max: int
    make_member_id: Callable[[str], str]
