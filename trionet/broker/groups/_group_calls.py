"""The calls to a group, and their results, which may come later than the call returns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from ...protocol import error_codes

UNKNOWN_GENERATION: Final = -1


@attrs.frozen
class Join:
    """The content of a JoinGroup request.

    Attributes:
        member_id: the id that was assigned to the member, or ``""``.
        instance_id: the group instance id of a static member (KIP-345).
        client_id: the client id.
        client_host: the address that the client connects from.
        session_seconds: the session timeout of the member.
        rebalance_seconds: how long the group waits for the member to rejoin.
        protocol_type: ``consumer``, ``connect`` and the like.
        protocols: the metadata of each supported protocol by name, in order of preference.
        must_know_id: a member without an id is assigned one and must rejoin with it (KIP-394).
        can_skip_assignment: the member, as the leader, understands ``skip_assignment`` (KIP-814).
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


@attrs.frozen
class MemberMetadata:
    """A member as the leader sees it, to assign partitions."""

    id: str
    instance_id: str | None
    metadata: bytes


@attrs.frozen
class JoinGroupResult:
    """The result of a JoinGroup: a generation, or an error (Kafka: JoinGroupResult)."""

    member_id: str
    error_code: int = error_codes.NONE
    generation: int = UNKNOWN_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: str = ""
    skip_assignment: bool = False
    members: tuple[MemberMetadata, ...] = ()


@attrs.frozen
class SyncGroupResult:
    """The result of a SyncGroup: an assignment, or an error (Kafka: SyncGroupResult)."""

    error_code: int = error_codes.NONE
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""
