"""IncrementalAlterConfigs, versions 0 and 1: sets and deletes keys, and changes list values.

Gap: client metrics and groups have no settings; altering them is an error.
"""

from __future__ import annotations

from functools import partial

from ...protocol import api_keys
from ...protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from ..api._call import Call
from ..api._dispatch import serves
from ..config._alterations import OPERATIONS_MAX
from ..model._broker_state import BrokerState
from ._config_resources import AlterResult, alter_each, alter_incrementally


@serves(api_keys.INCREMENTAL_ALTER_CONFIGS, 0, 1)
async def handle(
    broker: BrokerState, request: IncrementalAlterConfigsRequest, call: Call
) -> IncrementalAlterConfigsResponse:
    call.expect(len(request.resources))
    resources = []
    for resource in request.resources:
        if call.must_pause():
            await call.pause()
        some = resource.configs[: OPERATIONS_MAX + 1]  # more are rejected
        operations = [(each.name, each.config_operation, each.value) for each in some]
        resources.append((resource.resource_type, resource.resource_name, operations))
    alter = partial(alter_incrementally, broker, validate_only=request.validate_only)
    outcomes = await alter_each(resources, alter, call)
    responses = call.elements(map(_response, outcomes), len(outcomes))
    return IncrementalAlterConfigsResponse(responses=responses)


def _response(outcome: AlterResult) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        resource_type=outcome.type,
        resource_name=outcome.name,
        error_code=outcome.error_code,
        error_message=outcome.error_message,
    )
