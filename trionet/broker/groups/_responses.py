"""The results of JoinGroup and SyncGroup, which may come later than the call."""

from __future__ import annotations

from typing import Final

import attrs

from ...protocol import error_codes

UNKNOWN_GENERATION: Final = -1


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
