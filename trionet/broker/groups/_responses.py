"""What a group answers to calls that may have to wait."""

from __future__ import annotations

from typing import Final

import attrs

from ...protocol import error_codes

UNKNOWN_GENERATION: Final = -1


@attrs.frozen
class MemberMetadata:
    """What the leader is told of a member, to assign partitions by."""

    id: str
    instance_id: str | None
    metadata: bytes


@attrs.frozen
class JoinAnswer:
    """The answer to a JoinGroup: a generation, or why there is none."""

    member_id: str
    error_code: int = error_codes.NONE
    generation: int = UNKNOWN_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: str = ""
    skip_assignment: bool = False
    members: tuple[MemberMetadata, ...] = ()


@attrs.frozen
class SyncAnswer:
    """The answer to a SyncGroup: an assignment, or why there is none."""

    error_code: int = error_codes.NONE
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""
