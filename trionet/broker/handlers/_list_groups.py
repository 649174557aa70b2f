"""ListGroups, versions 0 to 5: all groups, or those in given states (KIP-518) or of given types."""

from __future__ import annotations

from collections.abc import Iterable

from ...protocol import api_keys
from ...protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from ..api._call import Call
from ..api._dispatch import serves
from ..groups._group import Group
from ..groups._group_state import GroupState
from ..model._broker_state import BrokerState

TYPE = "classic"
_STATES = frozenset(state.value.lower() for state in GroupState)


@serves(api_keys.LIST_GROUPS, 0, 5, only_responds=True)
async def handle(broker: BrokerState, request: ListGroupsRequest, call: Call) -> ListGroupsResponse:
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
    """The known names among the requested ones, of which there may be very many."""
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
