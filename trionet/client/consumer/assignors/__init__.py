"""Assignors: how the partitions of topics are divided among the members of a group."""

from __future__ import annotations

from .assignor import (
    Assignor,
    MemberSubscription,
    PartitionsByTopic,
    RebalanceProtocol,
    partitions_by_topic,
)
from .cooperative_sticky_assignor import CooperativeStickyAssignor
from .range_assignor import RangeAssignor
from .round_robin_assignor import RoundRobinAssignor
from .sticky_assignor import StickyAssignor

__all__ = [
    "Assignor",
    "CooperativeStickyAssignor",
    "MemberSubscription",
    "PartitionsByTopic",
    "RangeAssignor",
    "RebalanceProtocol",
    "RoundRobinAssignor",
    "StickyAssignor",
    "partitions_by_topic",
]
