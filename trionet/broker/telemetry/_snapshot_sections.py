"""The snapshot sections for groups and fetch sessions; the server provides the others."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import partial
from typing import Generic, TypeVar

from ...server.metrics._snapshot_sections import Row, Section, SectionPage
from ..groups._group import Group, GroupState
from ..groups._members import Member
from ..model._fetch_sessions import FetchSession
from ._fetch_positions import FetchPositions

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class Numbers(Generic[K]):
    """Assigns ascending numbers to keys; a key keeps its number for as long as it exists."""

    def __init__(self) -> None:
        self._numbers: dict[K, int] = {}
        self._next = 0

    def of(self, keys: Iterable[K]) -> list[tuple[int, K]]:
        """Return each key as ``(number, key)``, sorted by number, and forget all other keys."""
        current = dict.fromkeys(keys)
        known = self._numbers
        if any(key not in current for key in known):
            known = self._numbers = {key: n for key, n in known.items() if key in current}
        if len(known) < len(current):
            for key in current:
                if key not in known:
                    known[key], self._next = self._next, self._next + 1
        return [(number, key) for key, number in known.items()]


def groups_section(
    groups: Callable[[], Iterable[Group]],
    positions: Callable[[float], FetchPositions],
    clock: Callable[[], float],
) -> Section:
    """Return the section of classic groups and their members.

    Args:
        groups: returns the groups that the node coordinates.
        positions: returns the positions of consumers at a time; called once for each page.
        clock: returns the current time on the event loop's clock, in seconds.
    """
    return _section(
        lambda: {group.id: group for group in groups()},
        lambda now: partial(_group_row, positions(now), now),
        clock,
    )


def fetch_sessions_section(
    sessions: Callable[[], Iterable[FetchSession]], clock: Callable[[], float]
) -> Section:
    """Return the section of incremental fetch sessions (KIP-227).

    Args:
        sessions: returns the cached sessions.
        clock: returns the current time on the event loop's clock, in seconds.
    """
    return _section(
        lambda: {each.id: each for each in sessions()},
        lambda now: partial(_session_row, now),
        clock,
    )


def _section(
    items: Callable[[], Mapping[K, T]],
    row_at: Callable[[float], Callable[[T], Row]],
    clock: Callable[[], float],
) -> Section:
    """Return the section of items by id, the newest first.

    Args:
        items: returns the items.
        row_at: returns the function that converts the items of a page, given the time.
        clock: returns the time.
    """
    numbers: Numbers[K] = Numbers()

    def page(count_max: int, before: int | None) -> SectionPage:
        row, by_id = row_at(clock()), items()
        numbered = numbers.of(by_id)
        end = len(numbered)
        if before is not None:
            end = bisect_left(numbered, before, key=lambda item: item[0])
        shown = numbered[max(0, end - count_max) : end][::-1]
        return SectionPage(
            len(by_id), [{"number": number, **row(by_id[id])} for number, id in shown]
        )

    return page


def _group_row(positions: FetchPositions, now: float, group: Group) -> Row:
    leader = group.members.leader_id
    return {
        "id": group.id,
        "state": group.state.value,
        "state_seconds": now - group.changed_at,
        "generation": group.generation,
        "protocol_type": group.protocol_type,
        "protocol": group.protocol_name,
        "pending": len(group.members.pending),
        "members": [_member_row(member, group, leader, now) for member in group.members],
        "positions": positions.of(group),
    }


def _member_row(member: Member, group: Group, leader: str | None, now: float) -> Row:
    return {
        "id": member.id,
        "instance_id": member.instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "is_leader": member.id == leader,
        "phase": _phase(member, group),
        "session_seconds": member.session_seconds,
        "expires_seconds": None if math.isinf(member.expires_at) else member.expires_at - now,
    }


def _phase(member: Member, group: Group) -> str:
    """Return a member's phase in a rebalance: the call it is waiting in, or must make next."""
    if member.is_joining:
        return "joining"
    if member.is_syncing:
        return "syncing"
    if group.state is GroupState.PREPARING:
        return "to join"
    if group.state is GroupState.COMPLETING:
        return "to sync"
    return "stable"


def _session_row(now: float, session: FetchSession) -> Row:
    return {
        "id": session.id,
        "client_id": session.client[0],
        "client_host": session.client[1],
        "epoch": session.epoch,
        "partitions": len(session.partitions),
        "uses_topic_ids": session.uses_topic_ids,
        "idle_seconds": now - session.last_used,
    }
