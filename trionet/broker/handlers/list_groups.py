"""ListGroups, versions 0 to 5: all groups, or those in some states (KIP-518) or of some types."""

from __future__ import annotations

from ...protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from ..call import Call
from ..state import BrokerState

TYPE = "classic"


async def handle(broker: BrokerState, request: ListGroupsRequest, call: Call) -> ListGroupsResponse:
    states = {state.lower().strip() for state in request.states_filter}
    types = {each.lower() for each in request.types_filter}
    if types and TYPE not in types:
        return ListGroupsResponse()
    return ListGroupsResponse(
        groups=[
            ListedGroup(
                group_id=group.id,
                protocol_type=group.protocol_type or "",
                group_state=group.state.value,
                group_type=TYPE,
            )
            for group in broker.groups.groups.values()
            if not states or group.state.value.lower() in states
        ]
    )
