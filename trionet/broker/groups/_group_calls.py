"""The calls to a group and their results, which may arrive after a call has returned."""

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
        member_id: the member id assigned earlier, or ``""``.
        instance_id: the group instance id of a static member (KIP-345).
        client_id: the client id.
        client_host: the client's address.
        session_seconds: the session timeout.
        rebalance_seconds: the rebalance timeout: how long the group waits for the member to rejoin.
        protocol_type: the protocol type, such as ``consumer`` or ``connect``.
        protocols: the metadata of the supported protocols by name, in order of preference.
        must_know_id: whether a member without an id is assigned one and must rejoin with that id
            (KIP-394).
        can_skip_assignment: whether the client understands ``skip_assignment``, with which a
            leader must not compute assignments (KIP-814).
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
    """The member and generation in a request, or generation -1 if the caller is not a member."""

    member_id: str
    instance_id: str | None
    generation: int


@attrs.frozen
class MemberMetadata:
    """A member's entry in the list from which the leader computes the assignments."""

    id: str
    instance_id: str | None
    metadata: bytes


@attrs.frozen
class JoinGroupResult:
    """The result of a JoinGroup request: a new generation or an error (Kafka: JoinGroupResult)."""

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
    """The result of a SyncGroup request: an assignment or an error (Kafka: SyncGroupResult)."""

    error_code: int = error_codes.NONE
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""
