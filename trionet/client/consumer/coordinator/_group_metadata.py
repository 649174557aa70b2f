"""The identity of a consumer in its group (Kafka: ConsumerGroupMetadata)."""

from __future__ import annotations

from typing import NamedTuple


class GroupMetadata(NamedTuple):
    """The identity of a consumer in its group.

    Attributes:
        group_id: the group.
        generation: of the group, counts its rebalances; -1 outside the group.
        member_id: assigned by the coordinator; empty outside the group.
        instance_id: of a static member; None for others.
    """

    group_id: str
    generation: int
    member_id: str
    instance_id: str | None
