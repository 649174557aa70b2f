"""Assignors, which divide the partitions of topics among the members of a group."""

from __future__ import annotations

from ._assignor import (
    Assignor,
    MemberSubscription,
    PartitionsByTopic,
    RebalanceProtocol,
    partitions_by_topic,
)
from ._range_and_round_robin import RangeAssignor, RoundRobinAssignor
from ._sticky_assignors import CooperativeStickyAssignor, StickyAssignor

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
