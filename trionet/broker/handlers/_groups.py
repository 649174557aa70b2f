"""Implements the consumer group APIs: their coordinator, membership and administration."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import islice

from ...errors import ApiError
from ...protocol import api_keys, error_codes
from ...protocol.messages import (
    delete_groups,
    describe_groups,
    find_coordinator,
    heartbeat,
    join_group,
    leave_group,
    list_groups,
    sync_group,
)
from ..api._call import Call
from ..api._dispatch import serves
from ..groups._group import Group, GroupState
from ..groups._members import Caller, Join, Member
from ..model._broker_state import GROUP_OPERATIONS, BrokerState

GROUP_COORDINATOR = 0
TRANSACTION_COORDINATOR = 1
SHARE_COORDINATOR = 2
MANY_KEYS_VERSION = 4

# From this version on, a new member must rejoin with the member id that it is assigned (KIP-394).
MUST_KNOW_ID_VERSION = 4
# Before this version, "no protocol" is encoded as "" instead of null.
NULL_PROTOCOL_VERSION = 7
CAN_SKIP_ASSIGNMENT_VERSION = 9
# From this version on, clients send the protocol that they expect (KIP-559).
STATES_PROTOCOL_VERSION = 5
MANY_MEMBERS_VERSION = 3
# More members leave in several steps, as if by several requests.
LEFT_AT_ONCE = 1000

TYPE = "classic"
_STATES = frozenset(state.value.lower() for state in GroupState)
# Before this version, a group that does not exist is described as dead (KIP-1043).
NOT_FOUND_VERSION = 6
# The value if operations were not requested (KIP-430).
NO_OPERATIONS = -(2**31)


@serves(api_keys.FIND_COORDINATOR, 0, 6, only_responds=True)
async def handle_find_coordinator(
    broker: BrokerState, request: find_coordinator.FindCoordinatorRequest, call: Call
) -> find_coordinator.FindCoordinatorResponse:
    """Handle FindCoordinator, versions 0 to 6: the coordinators of groups and transactional ids.

    Version 0 is served because librdkafka infers features from it.

    Only brokers look for the coordinators of share groups; Apache Kafka returns INVALID_REQUEST if
    it does not serve such groups.

    Gap: no share groups.
    """
    if call.version >= MANY_KEYS_VERSION:
        call.expect(len(request.coordinator_keys))
        keys = request.coordinator_keys
        found_all = (_find(broker, request.key_type, key, call) for key in keys)
        return find_coordinator.FindCoordinatorResponse(
            coordinators=call.elements(found_all, len(keys))
        )
    found = _find(broker, request.key_type, request.key, call)
    return find_coordinator.FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _find(broker: BrokerState, key_type: int, key: str, call: Call) -> find_coordinator.Coordinator:
    if key_type in (GROUP_COORDINATOR, TRANSACTION_COORDINATOR):
        cluster = broker.cluster
        is_group = key_type == GROUP_COORDINATOR
        coordinator = (
            cluster.coordinator_of(key) if is_group else cluster.transaction_coordinator_of(key)
        )
        for node, address in broker.addresses(call.listener_name, [coordinator]):
            return find_coordinator.Coordinator(
                key=key,
                node_id=node.node_id,
                host=address.host,
                port=address.port,
                error_code=error_codes.NONE,
                error_message=None,
            )
        code = error_codes.COORDINATOR_NOT_AVAILABLE
        what = "group" if is_group else "transactional id"
        message = f"the coordinator of the {what} is not available"
    elif key_type == SHARE_COORDINATOR:
        code = error_codes.INVALID_REQUEST
        message = "share groups are not supported by this broker"
    else:
        code = error_codes.INVALID_REQUEST
        message = f"unknown coordinator type {key_type}; allowed: 0, 1, 2"
    return find_coordinator.Coordinator(
        key=key, node_id=-1, host="", port=-1, error_code=code, error_message=message
    )


@serves(api_keys.JOIN_GROUP, 0, 9)
async def handle_join_group(
    broker: BrokerState, request: join_group.JoinGroupRequest, call: Call
) -> join_group.JoinGroupResponse | None:
    """Handle JoinGroup, versions 0 to 9: join a consumer group, or rejoin in a rebalance.

    The response is sent once the join phase is complete. Until then, the call occupies no handler.
    """
    if len(request.protocols) > broker.config.integer("group.member.max.protocols"):
        return join_group.JoinGroupResponse(
            error_code=error_codes.INCONSISTENT_GROUP_PROTOCOL, member_id=request.member_id
        )
    rebalance_ms = request.rebalance_timeout_ms
    if call.version == 0:
        rebalance_ms = request.session_timeout_ms
    join = Join(
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        client_id=call.client_id or "",
        client_host=f"/{call.request.peer_address}",
        session_seconds=request.session_timeout_ms / 1000,
        rebalance_seconds=rebalance_ms / 1000,
        protocol_type=request.protocol_type,
        protocols={each.name: bytes(each.metadata) for each in request.protocols},
        must_know_id=call.version >= MUST_KNOW_ID_VERSION,
        can_skip_assignment=call.version >= CAN_SKIP_ASSIGNMENT_VERSION,
    )
    call.request.release()  # the call may wait for minutes

    def reply(response: join_group.JoinGroupResponse) -> None:
        if response.protocol_name is None and call.version < NULL_PROTOCOL_VERSION:
            response.protocol_name = ""
        call.respond(response)

    broker.groups.join(request.group_id, join, reply)
    return None


@serves(api_keys.SYNC_GROUP, 0, 5)
async def handle_sync_group(
    broker: BrokerState, request: sync_group.SyncGroupRequest, call: Call
) -> sync_group.SyncGroupResponse | None:
    """Handle SyncGroup, versions 0 to 5: store the leader's assignments, return the caller's own.

    The response is sent once the assignments are stored. Until then, the call occupies no handler.
    """
    protocol = (request.protocol_type, request.protocol_name)
    if call.version >= STATES_PROTOCOL_VERSION and None in protocol:
        return sync_group.SyncGroupResponse(error_code=error_codes.INCONSISTENT_GROUP_PROTOCOL)
    call.expect(len(request.assignments))
    assignments = {}
    for each in request.assignments:
        if call.must_pause():
            await call.pause()
        assignments[each.member_id] = bytes(each.assignment)
    call.request.release()
    broker.groups.sync(
        request.group_id,
        Caller(request.member_id, request.group_instance_id, request.generation_id),
        protocol,
        assignments,
        call.respond,
    )
    return None


@serves(api_keys.HEARTBEAT, 0, 4)
async def handle_heartbeat(
    broker: BrokerState, request: heartbeat.HeartbeatRequest, call: Call
) -> heartbeat.HeartbeatResponse:
    """Handle Heartbeat, versions 0 to 4: extend a member's session, and report a rebalance."""
    caller = Caller(request.member_id, request.group_instance_id, request.generation_id)
    return heartbeat.HeartbeatResponse(error_code=broker.groups.heartbeat(request.group_id, caller))


@serves(api_keys.LEAVE_GROUP, 0, 5)
async def handle_leave_group(
    broker: BrokerState, request: leave_group.LeaveGroupRequest, call: Call
) -> leave_group.LeaveGroupResponse:
    """Handle LeaveGroup, versions 0 to 5: remove members before their sessions expire.

    From version 3, a request may name several members by member id, or static members by instance
    id (KIP-345).
    """
    if not request.group_id:
        return leave_group.LeaveGroupResponse(error_code=error_codes.INVALID_GROUP_ID)
    error_code = broker.groups.coordinator_error(request.group_id)
    if error_code:  # of the whole request: Java's admin client does not retry those of members
        return leave_group.LeaveGroupResponse(error_code=error_code)
    if call.version < MANY_MEMBERS_VERSION:
        [error_code] = broker.groups.leave(request.group_id, [(request.member_id, None)])
        return leave_group.LeaveGroupResponse(error_code=error_code)
    call.expect(len(request.members))
    members = []
    left = iter(request.members)
    while some := list(islice(left, LEFT_AT_ONCE)):
        leaving = [(member.member_id, member.group_instance_id) for member in some]
        codes = broker.groups.leave(request.group_id, leaving)
        members += [
            leave_group.MemberResponse(
                member_id=id, group_instance_id=instance_id, error_code=error_code
            )
            for (id, instance_id), error_code in zip(leaving, codes, strict=True)
        ]
        if call.must_pause():
            await call.pause()
    return leave_group.LeaveGroupResponse(members=members)


@serves(api_keys.LIST_GROUPS, 0, 5, only_responds=True)
async def handle_list_groups(
    broker: BrokerState, request: list_groups.ListGroupsRequest, call: Call
) -> list_groups.ListGroupsResponse:
    """Handle ListGroups, versions 0 to 5, which can filter groups by state (KIP-518) and type."""
    states = await _requested(call, (each.strip() for each in request.states_filter), _STATES)
    types = await _requested(call, request.types_filter, frozenset([TYPE]))
    if request.types_filter and not types:
        return list_groups.ListGroupsResponse()
    call.expect(len(broker.groups.groups))
    groups = []
    for group in list(broker.groups.groups.values()):
        if call.must_pause():
            await call.pause()
        if not request.states_filter or group.state.value.lower() in states:
            groups.append(group)
    return list_groups.ListGroupsResponse(groups=call.elements(map(_listed, groups), len(groups)))


async def _requested(call: Call, names: Iterable[str], known: frozenset[str]) -> set[str]:
    """Return the requested names that are known, in lower case; pause between names if needed."""
    requested = set()
    for name in names:
        if call.must_pause():
            await call.pause()
        if name.lower() in known:
            requested.add(name.lower())
    return requested


def _listed(group: Group) -> list_groups.ListedGroup:
    return list_groups.ListedGroup(
        group_id=group.id,
        protocol_type=group.protocol_type or "",
        group_state=group.state.value,
        group_type=TYPE,
    )


@serves(api_keys.DESCRIBE_GROUPS, 0, 6, only_responds=True)
async def handle_describe_groups(
    broker: BrokerState, request: describe_groups.DescribeGroupsRequest, call: Call
) -> describe_groups.DescribeGroupsResponse:
    """Handle DescribeGroups, versions 0 to 6, which describes the state and members of groups."""
    call.expect(len(request.groups))
    ids = dict.fromkeys(request.groups)  # Kafka describes a repeated group repeatedly
    known = broker.groups.groups
    call.expect(len(ids) + sum(len(known[id].members) for id in ids if id in known))
    operations = GROUP_OPERATIONS if request.include_authorized_operations else NO_OPERATIONS
    groups = (_describe(broker, call, group_id, operations) for group_id in ids)
    return describe_groups.DescribeGroupsResponse(groups=call.elements(groups, len(ids)))


def _describe(
    broker: BrokerState, call: Call, group_id: str, operations: int
) -> describe_groups.DescribedGroup:
    error_code = broker.groups.coordinator_error(group_id)
    if error_code:
        return describe_groups.DescribedGroup(group_id=group_id, error_code=error_code)
    group = broker.groups.groups.get(group_id)
    if group is not None:
        described = _found(group, call)
    elif call.version < NOT_FOUND_VERSION:
        described = describe_groups.DescribedGroup(
            group_id=group_id, group_state=GroupState.DEAD.value
        )
    else:
        error = ApiError(error_codes.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return describe_groups.DescribedGroup(
            group_id=group_id,
            group_state=GroupState.DEAD.value,
            error_code=error.error_code,
            error_message=error.message,
        )
    described.authorized_operations = operations
    return described


def _found(group: Group, call: Call) -> describe_groups.DescribedGroup:
    is_stable = group.state is GroupState.STABLE
    name = group.protocol_name if is_stable else None
    return describe_groups.DescribedGroup(
        group_id=group.id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=name or "",
        members=call.elements(
            (_member(member, name) for member in group.members), len(group.members)
        ),
    )


def _member(member: Member, protocol_name: str | None) -> describe_groups.DescribedGroupMember:
    described = describe_groups.DescribedGroupMember(
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
async def handle_delete_groups(
    broker: BrokerState, request: delete_groups.DeleteGroupsRequest, call: Call
) -> delete_groups.DeleteGroupsResponse | None:
    """Handle DeleteGroups, versions 0 to 2: delete empty groups and their offsets (KIP-229)."""
    call.expect(len(request.groups_names))
    names = list(dict.fromkeys(request.groups_names))
    if not names:
        return delete_groups.DeleteGroupsResponse()
    codes: dict[str, int] = {}

    def done(group_id: str, error_code: int) -> None:
        codes[group_id] = error_code
        if len(codes) == len(names):
            results = (
                delete_groups.DeletableGroupResult(group_id=n, error_code=codes[n]) for n in names
            )
            call.respond(
                delete_groups.DeleteGroupsResponse(results=call.elements(results, len(names)))
            )

    for group_id in names:
        if call.must_pause():
            await call.pause()
        broker.groups.delete(group_id, partial(done, group_id))
    return None
