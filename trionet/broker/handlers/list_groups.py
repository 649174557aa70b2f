"""ListGroups, versions 0 to 5: all groups, or those in some states (KIP-518) or of some types."""

from __future__ import annotations

from ...protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from ..call import Call
from ..groups.group import Group
from ..state import BrokerState

TYPE = "classic"


async def handle(broker: BrokerState, request: ListGroupsRequest, call: Call) -> ListGroupsResponse:
    states = {state.lower().strip() for state in request.states_filter}
    types = {each.lower() for each in request.types_filter}
    if types and TYPE not in types:
        return ListGroupsResponse()
    call.expect(len(broker.groups.groups))
    groups = []
    for group in list(broker.groups.groups.values()):
        if call.must_pause():
            await call.pause()
        if not states or group.state.value.lower() in states:
            groups.append(group)
    return ListGroupsResponse(groups=call.elements(map(_listed, groups), len(groups)))


def _listed(group: Group) -> ListedGroup:
    return ListedGroup(
        group_id=group.id,
        protocol_type=group.protocol_type or "",
        group_state=group.state.value,
        group_type=TYPE,
    )
