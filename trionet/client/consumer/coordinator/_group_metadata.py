"""Who a consumer is to its group (Kafka: ConsumerGroupMetadata)."""

from __future__ import annotations

from typing import NamedTuple


class GroupMetadata(NamedTuple):
    """Who a consumer is to its group.

    Attributes:
        group_id: the group.
        generation: counts its rebalances; -1 outside the group.
        member_id: the id that the coordinator gave; empty outside the group.
        instance_id: of a static member; None for others.
    """

    group_id: str
    generation: int
    member_id: str
    instance_id: str | None
