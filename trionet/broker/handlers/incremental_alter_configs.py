"""IncrementalAlterConfigs, versions 0 and 1: keys are set, deleted, appended and subtracted.

Gap: client metrics and groups have no settings here; altering them is an error.
"""

from __future__ import annotations

from functools import partial

from ...protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from ..call import Call
from ..config_resources import alter_each, alter_step_by_step
from ..state import BrokerState


async def handle(
    broker: BrokerState, request: IncrementalAlterConfigsRequest, call: Call
) -> IncrementalAlterConfigsResponse:
    resources = [
        (
            resource.resource_type,
            resource.resource_name,
            [(each.name, each.config_operation, each.value) for each in resource.configs],
        )
        for resource in request.resources
    ]
    alter = partial(alter_step_by_step, broker, validate_only=request.validate_only)
    return IncrementalAlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                resource_type=outcome.type,
                resource_name=outcome.name,
                error_code=outcome.error_code,
                error_message=outcome.error_message,
            )
            for outcome in await alter_each(resources, alter)
        ]
    )
