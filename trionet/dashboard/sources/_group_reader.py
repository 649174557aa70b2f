"""Reads groups over the Kafka protocol: states, members, committed offsets and lag."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import attrs
import trio

from ...client._topic_partition import offset_lag, total_lag
from ...client.admin._calls import Calls
from ...client.admin._group_descriptions import GroupDescription, GroupMember
from ...client.admin._groups import Committed, GroupCalls, GroupListing
from ...errors import TrionetError
from ..model._model import Model
from ..model._rows import GroupRow, LagRow, MemberRow, PartitionRow, committed_lag
from ._source import Pace
from ._topic_reader import EARLIEST, LATEST, Key, read_offsets

#: The maximum number of groups per request.
GROUPS_PER_REQUEST: Final = 50
#: The number of listed groups to convert before other tasks run.
GROUPS_PER_STEP: Final = 100
#: The group types that DescribeGroups and ConsumerGroupDescribe support.
_DESCRIBED: Final = ("", "classic", "consumer")


class GroupReader:
    """Reads groups, and updates them in a model.

    Args:
        model: the model to update.
        partition: returns a partition with its leader; None if the partition is unknown.
    """

    def __init__(
        self,
        model: Model,
        partition: Callable[[Key], PartitionRow | None],
    ) -> None:
        self._model = model
        self._partition = partition

    async def read(self, calls: Calls) -> None:
        """Read the list of groups with their states.

        Raises:
            TrionetError: a broker could not be reached.
        """
        listed = await GroupCalls(calls).list()
        groups, pace = list(listed.values()), Pace(share=1.0)
        for first in range(0, len(groups), GROUPS_PER_STEP):
            rows = {each.id: self._row(each) for each in groups[first : first + GROUPS_PER_STEP]}
            self._model.update_groups(rows, trio.current_time(), total=len(groups))
            self._model.changed()
            await pace.rest()
        self._model.update_groups({}, trio.current_time(), all_of=set(listed))
        self._model.changed()

    def _row(self, group: GroupListing) -> GroupRow:
        before = self._model.group(group.id) or GroupRow(group.id, "", "", "")
        state = group.state or before.state
        reported = (group.type, state, group.protocol_type)
        if reported == (before.type, before.state, before.protocol_type):
            return before
        return attrs.evolve(before, type=group.type, state=state, protocol_type=group.protocol_type)

    async def read_all_details(self, calls: Calls, pace: Pace) -> None:
        """Read the members, offsets and lag of all groups, and sum up the lag.

        Raises:
            TrionetError: a request as a whole failed.
        """
        began = trio.current_time()
        await self.read_details(calls, list(self._model.groups), pace)
        if pace.is_needed():  # otherwise some of them were not read
            self._model.groups.as_of = began
            self._sum_up()

    async def read_details(self, calls: Calls, ids: Iterable[str], pace: Pace) -> None:
        """Read the members, offsets and lag of groups.

        If a group no longer exists or access to it is denied, its data stays unknown.

        Raises:
            TrionetError: a request as a whole failed.
        """
        known = [id for id in ids if _type_of(self._model.group(id)) in _DESCRIBED]
        ends: dict[Key, int] = {}
        starts: dict[Key, int] = {}
        await trio.lowlevel.checkpoint()
        for first in range(0, len(known), GROUPS_PER_REQUEST):
            if not pace.is_needed():
                return
            part = known[first : first + GROUPS_PER_REQUEST]
            pace.begin()
            described = await GroupCalls(calls).describe(part)
            committed = await GroupCalls(calls).list_offsets(part)
            await pace.rest()
            keys = _committed(committed.values()) | _assigned(described.values())
            # Many groups read the same topics; their end offsets are read once.
            partitions = [self._partition(key) for key in keys - ends.keys()]
            rows = [row for row in partitions if row is not None]
            await read_offsets(calls, rows, LATEST, pace, ends.update)
            if len(known) == 1:
                await read_offsets(calls, rows, EARLIEST, pace, starts.update)
            if not pace.is_needed():
                return  # with offsets that were not read, which would count as unknown
            self._put(part, described, committed, starts, ends)

    def _put(
        self,
        ids: Iterable[str],
        described: Mapping[str, GroupDescription | TrionetError],
        committed: Mapping[str, Committed | TrionetError],
        starts: Mapping[Key, int],
        ends: Mapping[Key, int],
    ) -> None:
        rows = {}
        now = trio.current_time()
        for id in ids:
            before, description = self._model.group(id), described[id]
            if before is None:
                continue
            if isinstance(description, TrionetError):
                rows[id] = attrs.evolve(before, failure=f"{description}")
                continue
            offsets, lags, failure = committed[id], None, None
            if isinstance(offsets, TrionetError):
                failure = f"{offsets}"
            else:
                lags = _lags(description, offsets, starts, ends)
            rows[id] = attrs.evolve(
                _detailed(before, description, lags), failure=failure, read_at=now
            )
        self._model.update_groups(rows, now)
        self._model.changed()

    def _sum_up(self) -> None:
        """Update the total lag of all groups, which is unknown if one could not be read.

        Groups without a commit have no lag.
        """
        figures = self._model.figures
        groups = self._model.groups.values()
        lag = total_lag(
            row.lag
            for row in groups
            if row.type in _DESCRIBED and (row.lag is not None or not _is_uncommitted(row))
        )
        if lag is None:
            figures.mark_unknown(("lag",))
        else:
            figures.put("lag", trio.current_time(), lag)


def _type_of(row: GroupRow | None) -> str | None:
    return None if row is None else row.type


def _is_uncommitted(row: GroupRow) -> bool:
    return row.lags is not None and all(each.committed is None for each in row.lags)


def _assigned(described: Iterable[GroupDescription | TrionetError]) -> set[Key]:
    return {
        (partition.topic, partition.partition)
        for group in described
        if not isinstance(group, TrionetError)
        for member in group.members
        for partition in member.assignment
    }


def _committed(committed: Iterable[Committed | TrionetError]) -> set[Key]:
    return {
        (partition.topic, partition.partition)
        for offsets in committed
        if not isinstance(offsets, TrionetError)
        for partition in offsets
    }


def _detailed(
    row: GroupRow, description: GroupDescription, lags: tuple[LagRow, ...] | None
) -> GroupRow:
    return attrs.evolve(
        row,
        type=description.type,
        state=description.state,
        protocol_type=description.protocol_type,
        assignor=description.assignor,
        coordinator=description.coordinator.id,
        generation=None if description.epoch < 0 else description.epoch,
        members=len(description.members),
        lag=None if lags is None else committed_lag(lags),
        detail=tuple(map(_member, description.members)),
        lags=lags,
    )


def _member(member: GroupMember) -> MemberRow:
    return MemberRow(
        member.id,
        member.instance_id,
        member.client_id,
        member.client_host,
        tuple(sorted((each.topic, each.partition) for each in member.assignment)),
        None if member.epoch < 0 else member.epoch,
    )


def _lags(
    description: GroupDescription,
    committed: Committed,
    starts: Mapping[Key, int],
    ends: Mapping[Key, int],
) -> tuple[LagRow, ...]:
    owners = {
        (partition.topic, partition.partition): member.id
        for member in description.members
        for partition in member.assignment
    }
    found = {(each.topic, each.partition): offset for each, offset in committed.items()}
    rows = []
    for key in sorted({*owners, *found}):
        each = found.get(key)
        offset = None if each is None or isinstance(each, TrionetError) else each
        start, end = starts.get(key), ends.get(key)
        rows.append(
            LagRow(
                *key,
                None if offset is None else offset.offset,
                start,
                end,
                offset_lag(None if offset is None else offset.offset, end),
                owners.get(key),
                "" if offset is None else offset.metadata,
            )
        )
    return tuple(rows)
