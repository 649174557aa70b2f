"""AlterConfigs, versions 0 to 2: a resource gets these settings and loses all others.

Gap: client metrics and groups have no settings here; altering them is an error. Loggers are for
IncrementalAlterConfigs alone, as in Kafka.
"""

from __future__ import annotations

from functools import partial

from ...protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from ..alterations import SET
from ..call import Call
from ..config_resources import alter_all, alter_each
from ..state import BrokerState


async def handle(
    broker: BrokerState, request: AlterConfigsRequest, call: Call
) -> AlterConfigsResponse:
    resources = [
        (
            resource.resource_type,
            resource.resource_name,
            [(each.name, SET, each.value) for each in resource.configs],
        )
        for resource in request.resources
    ]
    alter = partial(alter_all, broker, validate_only=request.validate_only)
    return AlterConfigsResponse(
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
