"""Builds the rows of groups by merging the cluster's report with the broker's internals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from ._rows import GroupRow, MemberRow


def with_internals(row: GroupRow, values: Mapping[str, Any]) -> GroupRow:
    """Merge the row of a group with its entry in a broker's snapshot.

    Args:
        row: the row reported by the cluster.
        values: the group's entry under ``groups`` in ``/snapshot``.
    """
    detail = row.detail
    if detail is not None:
        inside = {member["id"]: member for member in values["members"]}
        detail = tuple(_member(member, inside.get(member.id)) for member in detail)
    return attrs.evolve(
        row,
        state=values["state"],
        state_seconds=values["state_seconds"],
        generation=values["generation"],
        members=len(values["members"]),
        detail=detail,
    )


def _member(member: MemberRow, values: Mapping[str, Any] | None) -> MemberRow:
    if values is None:
        return member
    return attrs.evolve(
        member,
        is_leader=values["is_leader"],
        phase=values["phase"],
        expires_seconds=values["expires_seconds"],
    )


def from_internals(values: Mapping[str, Any]) -> GroupRow:
    """Return the row of a group that only the broker's snapshot contains."""
    row = GroupRow(
        values["id"],
        "classic",
        values["state"],
        values["protocol_type"] or "",
        values["protocol"],
        detail=tuple(
            MemberRow(
                member["id"], member["instance_id"], member["client_id"], member["client_host"], ()
            )
            for member in values["members"]
        ),
    )
    return with_internals(row, values)
