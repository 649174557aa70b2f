"""How the partitions of topics are divided among the members of a group."""

from __future__ import annotations

from .assignor import (
    Assignor,
    MemberSubscription,
    PartitionsByTopic,
    RebalanceProtocol,
    partitions_by_topic,
)
from .range_assignor import RangeAssignor

__all__ = [
    "Assignor",
    "MemberSubscription",
    "PartitionsByTopic",
    "RangeAssignor",
    "RebalanceProtocol",
    "partitions_by_topic",
]
