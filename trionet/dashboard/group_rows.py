"""A group as the cluster tells it, with what only its own broker tells beside it; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from .rows import GroupRow, MemberRow


def with_internals(row: GroupRow, told: Mapping[str, Any]) -> GroupRow:
    """The row of a group with what the broker's snapshot has of it.

    Args:
        row: as the cluster tells it.
        told: a row of ``groups`` in ``/snapshot``.
    """
    detail = row.detail
    if detail is not None:
        inside = {member["id"]: member for member in told["members"]}
        detail = tuple(_member(member, inside.get(member.id)) for member in detail)
    return attrs.evolve(
        row,
        state=told["state"],
        state_seconds=told["state_seconds"],
        generation=told["generation"],
        members=len(told["members"]),
        detail=detail,
    )


def _member(member: MemberRow, told: Mapping[str, Any] | None) -> MemberRow:
    if told is None:
        return member
    return attrs.evolve(
        member,
        is_leader=told["is_leader"],
        phase=told["phase"],
        expires_seconds=told["expires_seconds"],
    )


def from_internals(told: Mapping[str, Any]) -> GroupRow:
    """The row of a group that the cluster has not told of."""
    row = GroupRow(
        told["id"],
        "classic",
        told["state"],
        told["protocol_type"] or "",
        told["protocol"],
        detail=tuple(
            MemberRow(
                member["id"], member["instance_id"], member["client_id"], member["client_host"], ()
            )
            for member in told["members"]
        ),
    )
    return with_internals(row, told)
