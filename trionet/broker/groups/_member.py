"""One member of a classic consumer group (Kafka: ClassicGroupMember)."""

from __future__ import annotations

import math
from collections.abc import Mapping

import attrs


@attrs.frozen
class Join:
    """The content of a JoinGroup request.

    Attributes:
        member_id: the id that was assigned to it, or ``""``.
        instance_id: the group instance id of a static member (KIP-345).
        client_id: the client id.
        client_host: the address that it connects from.
        session_seconds: its session timeout.
        rebalance_seconds: how long the group waits for it to join again.
        protocol_type: ``consumer``, ``connect`` and the like.
        protocols: metadata by the name of each protocol it supports, in order of preference.
        must_know_id: without an id, it is assigned one and has to join again with it (KIP-394).
        can_skip_assignment: as the leader, it understands ``skip_assignment`` (KIP-814).
    """

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_seconds: float
    rebalance_seconds: float
    protocol_type: str
    protocols: Mapping[str, bytes]
    must_know_id: bool = False
    can_skip_assignment: bool = False


@attrs.frozen
class Caller:
    """The member and generation stated in a request; generation -1 means not a member."""

    member_id: str
    instance_id: str | None
    generation: int


@attrs.define(eq=False)
class Member:
    """A member and its waiting calls.

    Attributes:
        id: assigned by the coordinator; a new one each time a static member restarts.
        join_reply: where the result of its JoinGroup goes, while that waits.
        sync_reply: where the result of its SyncGroup goes, while that waits.
        has_synced: it has sent a SyncGroup in this generation.
        is_new: it was in no generation yet.
        expires_at: when its session expires, in seconds of the group's clock.
        assignment: the assignment by the leader.
    """

    id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_seconds: float
    rebalance_seconds: float
    protocol_type: str
    protocols: Mapping[str, bytes]
    join_reply: object = None
    sync_reply: object = None
    has_synced: bool = False
    is_new: bool = True
    expires_at: float = math.inf
    assignment: bytes = b""

    @classmethod
    def of(cls, join: Join, id: str) -> Member:
        """Create a member from its JoinGroup."""
        return cls(
            id,
            join.instance_id,
            join.client_id,
            join.client_host,
            join.session_seconds,
            join.rebalance_seconds,
            join.protocol_type,
            join.protocols,
        )

    @property
    def is_joining(self) -> bool:
        return self.join_reply is not None

    @property
    def is_syncing(self) -> bool:
        return self.sync_reply is not None

    def update(self, join: Join) -> None:
        """Update it from a later JoinGroup."""
        self.client_id = join.client_id
        self.client_host = join.client_host
        self.session_seconds = join.session_seconds
        self.rebalance_seconds = join.rebalance_seconds
        self.protocols = join.protocols

    def has_protocols(self, protocols: Mapping[str, bytes]) -> bool:
        """Whether these are its protocols, in the same order and with the same metadata."""
        return list(self.protocols.items()) == list(protocols.items())

    def vote(self, candidates: set[str]) -> str:
        """Its preferred protocol among candidates that it supports."""
        return next(name for name in self.protocols if name in candidates)
