"""The states of a classic group, and the settings of all groups."""

from __future__ import annotations

import enum
from collections.abc import Callable

import attrs


class GroupState(enum.Enum):
    """The state of a group; the values are the names that Kafka's tools show."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


@attrs.frozen
class GroupSettings:
    """A broker's settings for groups.

    Attributes:
        initial_delay: seconds to wait for more members before the first generation of an empty
            group (``group.initial.rebalance.delay.ms``).
        members_max: ``group.max.size``.
        make_member_id: returns a new id with a prefix.
    """

    initial_delay: float
    members_max: int
    make_member_id: Callable[[str], str]
