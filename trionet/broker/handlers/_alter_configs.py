"""AlterConfigs, versions 0 to 2: replaces all settings of a resource.

Gap: client metrics and groups have no settings; altering them is an error. Loggers can only be
altered by IncrementalAlterConfigs, as in Kafka.
"""

from __future__ import annotations

from functools import partial

from ...protocol import api_keys
from ...protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from ..api._call import Call
from ..api._dispatch import serves
from ..config._alterations import OPERATIONS_MAX, SET
from ..model._broker_state import BrokerState
from ._config_resources import AlterResult, alter_each, replace_all


@serves(api_keys.ALTER_CONFIGS, 0, 2)
async def handle(
    broker: BrokerState, request: AlterConfigsRequest, call: Call
) -> AlterConfigsResponse:
    call.expect(len(request.resources))
    resources = []
    for resource in request.resources:
        if call.must_pause():
            await call.pause()
        some = resource.configs[: OPERATIONS_MAX + 1]  # more are rejected
        operations = [(each.name, SET, each.value) for each in some]
        resources.append((resource.resource_type, resource.resource_name, operations))
    alter = partial(replace_all, broker, validate_only=request.validate_only)
    outcomes = await alter_each(resources, alter, call)
    responses = call.elements(map(_response, outcomes), len(outcomes))
    return AlterConfigsResponse(responses=responses)


def _response(outcome: AlterResult) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        resource_type=outcome.type,
        resource_name=outcome.name,
        error_code=outcome.error_code,
        error_message=outcome.error_message,
    )
