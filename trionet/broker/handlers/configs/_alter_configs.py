"""Implements AlterConfigs and IncrementalAlterConfigs, which change settings."""

from __future__ import annotations

from functools import partial
from typing import TypeVar

from ....protocol import api_keys
from ....protocol.messages import incremental_alter_configs as incremental
from ....protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from ...api._call import Call
from ...api._dispatch import serves
from ...config._alterations import OPERATIONS_MAX, SET
from ...model._broker_state import BrokerState
from ._config_resources import AlterResult, alter_each, alter_incrementally, replace_all

R = TypeVar("R", AlterConfigsResourceResponse, incremental.AlterConfigsResourceResponse)


@serves(api_keys.ALTER_CONFIGS, 0, 2)
async def alter_configs(
    broker: BrokerState, request: AlterConfigsRequest, call: Call
) -> AlterConfigsResponse:
    """Handle AlterConfigs, versions 0 to 2, which replaces all settings of a resource.

    Gap: client metrics and groups have no settings; altering them is an error. Loggers can only be
    altered by IncrementalAlterConfigs, as in Kafka.
    """
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
    response = partial(_response, AlterConfigsResourceResponse)
    responses = call.elements(map(response, outcomes), len(outcomes))
    return AlterConfigsResponse(responses=responses)


@serves(api_keys.INCREMENTAL_ALTER_CONFIGS, 0, 1)
async def incremental_alter_configs(
    broker: BrokerState, request: incremental.IncrementalAlterConfigsRequest, call: Call
) -> incremental.IncrementalAlterConfigsResponse:
    """Handle IncrementalAlterConfigs, versions 0 and 1, which alters individual keys.

    Gap: client metrics and groups have no settings; altering them is an error.
    """
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
    response = partial(_response, incremental.AlterConfigsResourceResponse)
    responses = call.elements(map(response, outcomes), len(outcomes))
    return incremental.IncrementalAlterConfigsResponse(responses=responses)


def _response(kind: type[R], outcome: AlterResult) -> R:
    return kind(
        resource_type=outcome.type,
        resource_name=outcome.name,
        error_code=outcome.error_code,
        error_message=outcome.error_message,
    )
