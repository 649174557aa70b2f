"""One member of a classic consumer group."""

from __future__ import annotations

import math
from collections.abc import Mapping

import attrs


@attrs.frozen
class Join:
    """What a JoinGroup request says of the one who joins.

    Attributes:
        member_id: the id it was given, or ``""``.
        instance_id: of a static member (KIP-345).
        client_id: what the client calls itself.
        client_host: where it connects from.
        session_seconds: how long it may be silent.
        rebalance_seconds: how long the group waits for it to join again.
        protocol_type: ``consumer``, ``connect`` and the like.
        protocols: metadata by the name of each protocol it knows, the one it likes best first.
        must_know_id: without an id it is given one and has to join again with it (KIP-394).
        can_skip_assignment: as a leader it understands that there is nothing to assign (KIP-814).
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
    """Who says to be a member of which generation; -1 is the generation of who is in none."""

    member_id: str
    instance_id: str | None
    generation: int


@attrs.define(eq=False)
class Member:
    """A member and what the group owes it.

    Attributes:
        id: given by the coordinator; another one each time a static member starts anew.
        join_reply: where the answer to its JoinGroup goes, while that waits.
        sync_reply: the same of its SyncGroup.
        has_synced: it has asked for its assignment in this generation.
        is_new: it has not seen a generation yet.
        expires_at: when it is dropped unless it is heard of, in seconds of the group's clock.
        assignment: what the leader gave it.
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
        """The member that somebody becomes by joining."""
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

    def takes(self, join: Join) -> None:
        """Take over what it says in a later JoinGroup."""
        self.client_id = join.client_id
        self.client_host = join.client_host
        self.session_seconds = join.session_seconds
        self.rebalance_seconds = join.rebalance_seconds
        self.protocols = join.protocols

    def has_protocols(self, protocols: Mapping[str, bytes]) -> bool:
        """Whether it has said the same before, in the same order."""
        return list(self.protocols.items()) == list(protocols.items())

    def votes_for(self, candidates: set[str]) -> str:
        """Which of some protocols it likes best; it knows each of them."""
        return next(name for name in self.protocols if name in candidates)
