"""Assignors, which divide the partitions of topics among the members of a group."""

from __future__ import annotations

from ._assignor import (
    Assignor,
    MemberSubscription,
    PartitionsByTopic,
    RebalanceProtocol,
    partitions_by_topic,
)
from ._cooperative_sticky_assignor import CooperativeStickyAssignor
from ._range_assignor import RangeAssignor
from ._round_robin_assignor import RoundRobinAssignor
from ._sticky_assignor import StickyAssignor

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
