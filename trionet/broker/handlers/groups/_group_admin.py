"""Implements the administration of consumer groups: ListGroups, DescribeGroups, DeleteGroups."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from ....protocol import api_keys, error_codes
from ....protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from ....protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from ....protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from ...api._call import Call
from ...api._dispatch import serves
from ...groups._group import Group
from ...groups._group_state import GroupState
from ...groups._members import Member
from ...model._broker_state import GROUP_OPERATIONS, BrokerState

TYPE = "classic"
_STATES = frozenset(state.value.lower() for state in GroupState)
# Before this version, a group that does not exist is described as dead (KIP-1043).
NOT_FOUND_VERSION = 6
# The value if operations were not requested (KIP-430).
NO_OPERATIONS = -(2**31)


@serves(api_keys.LIST_GROUPS, 0, 5, only_responds=True)
async def list_groups(
    broker: BrokerState, request: ListGroupsRequest, call: Call
) -> ListGroupsResponse:
    """Handle ListGroups, versions 0 to 5, which can filter groups by state (KIP-518) and type."""
    states = await _requested(call, (each.strip() for each in request.states_filter), _STATES)
    types = await _requested(call, request.types_filter, frozenset([TYPE]))
    if request.types_filter and not types:
        return ListGroupsResponse()
    call.expect(len(broker.groups.groups))
    groups = []
    for group in list(broker.groups.groups.values()):
        if call.must_pause():
            await call.pause()
        if not request.states_filter or group.state.value.lower() in states:
            groups.append(group)
    return ListGroupsResponse(groups=call.elements(map(_listed, groups), len(groups)))


async def _requested(call: Call, names: Iterable[str], known: frozenset[str]) -> set[str]:
    """Return the requested names that are known, in lower case; pause between names if needed."""
    requested = set()
    for name in names:
        if call.must_pause():
            await call.pause()
        if name.lower() in known:
            requested.add(name.lower())
    return requested


def _listed(group: Group) -> ListedGroup:
    return ListedGroup(
        group_id=group.id,
        protocol_type=group.protocol_type or "",
        group_state=group.state.value,
        group_type=TYPE,
    )


@serves(api_keys.DESCRIBE_GROUPS, 0, 6, only_responds=True)
async def describe_groups(
    broker: BrokerState, request: DescribeGroupsRequest, call: Call
) -> DescribeGroupsResponse:
    """Handle DescribeGroups, versions 0 to 6, which describes the state and members of groups."""
    call.expect(len(request.groups))
    ids = dict.fromkeys(request.groups)  # Kafka describes a repeated group repeatedly
    call.expect(len(ids) + sum(_members_of(broker, group_id) for group_id in ids))
    operations = GROUP_OPERATIONS if request.include_authorized_operations else NO_OPERATIONS
    groups = (_describe(broker, call, group_id, operations) for group_id in ids)
    return DescribeGroupsResponse(groups=call.elements(groups, len(ids)))


def _members_of(broker: BrokerState, group_id: str) -> int:
    group = broker.groups.groups.get(group_id)
    return 0 if group is None else len(group.members)


def _describe(broker: BrokerState, call: Call, group_id: str, operations: int) -> DescribedGroup:
    error_code = broker.groups.coordinator_error(group_id)
    if error_code:
        return DescribedGroup(group_id=group_id, error_code=error_code)
    group = broker.groups.groups.get(group_id)
    described = _missing(group_id, call.version) if group is None else _found(group, call)
    if not described.error_code:
        described.authorized_operations = operations
    return described


def _missing(group_id: str, version: int) -> DescribedGroup:
    described = DescribedGroup(group_id=group_id, group_state=GroupState.DEAD.value)
    if version >= NOT_FOUND_VERSION:
        described.error_code = error_codes.GROUP_ID_NOT_FOUND
        described.error_message = f"Group {group_id} not found."
    return described


def _found(group: Group, call: Call) -> DescribedGroup:
    is_stable = group.state is GroupState.STABLE
    name = group.protocol_name if is_stable else None
    return DescribedGroup(
        group_id=group.id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=name or "",
        members=call.elements(
            (_member(member, name) for member in group.members), len(group.members)
        ),
    )


def _member(member: Member, protocol_name: str | None) -> DescribedGroupMember:
    described = DescribedGroupMember(
        member_id=member.id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_assignment=member.assignment,
    )
    if protocol_name is not None:
        described.member_metadata = member.protocols.get(protocol_name, b"")
    return described


@serves(api_keys.DELETE_GROUPS, 0, 2)
async def delete_groups(
    broker: BrokerState, request: DeleteGroupsRequest, call: Call
) -> DeleteGroupsResponse | None:
    """Handle DeleteGroups, versions 0 to 2: delete empty groups and their offsets (KIP-229)."""
    call.expect(len(request.groups_names))
    names = list(dict.fromkeys(request.groups_names))
    if not names:
        return DeleteGroupsResponse()
    codes: dict[str, int] = {}

    def done(group_id: str, error_code: int) -> None:
        codes[group_id] = error_code
        if len(codes) == len(names):
            results = (DeletableGroupResult(group_id=n, error_code=codes[n]) for n in names)
            call.respond(DeleteGroupsResponse(results=call.elements(results, len(names))))

    for group_id in names:
        if call.must_pause():
            await call.pause()
        broker.groups.delete(group_id, partial(done, group_id))
    return None
