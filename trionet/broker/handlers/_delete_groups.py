"""DeleteGroups, versions 0 to 2: deletes empty groups with their offsets (KIP-229)."""

from __future__ import annotations

from functools import partial

from ...protocol import api_keys
from ...protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from ..api._call import Call
from ..api._dispatch import serves
from ..model._broker_state import BrokerState


@serves(api_keys.DELETE_GROUPS, 0, 2)
async def handle(
    broker: BrokerState, request: DeleteGroupsRequest, call: Call
) -> DeleteGroupsResponse | None:
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
