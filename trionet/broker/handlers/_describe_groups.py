"""DescribeGroups, versions 0 to 6: the state and the members of groups."""

from __future__ import annotations

from ...protocol import api_keys, error_codes
from ...protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from ..api._call import Call
from ..api._dispatch import serves
from ..groups._group import Group
from ..groups._group_state import GroupState
from ..groups._members import Member
from ..model._broker_state import GROUP_OPERATIONS, BrokerState

# Before this version, a group that does not exist is described as dead (KIP-1043).
NOT_FOUND_VERSION = 6
# The value if operations were not requested (KIP-430).
NO_OPERATIONS = -(2**31)


@serves(api_keys.DESCRIBE_GROUPS, 0, 6, only_responds=True)
async def handle(
    broker: BrokerState, request: DescribeGroupsRequest, call: Call
) -> DescribeGroupsResponse:
    call.expect(len(request.groups))
    ids = dict.fromkeys(request.groups)  # Kafka describes a group named twice twice
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
