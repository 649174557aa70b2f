"""Implements ListConfigResources, versions 0 and 1, which lists configurable resources (KIP-1142).

Version 0 is ListClientMetricsResources, whose response is empty, since the broker does not support
client metrics (KIP-714). Version 1 lists no groups, since they have no settings here.
"""

from __future__ import annotations

from ....protocol import api_keys, error_codes
from ....protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from ...api._call import Call
from ...api._dispatch import serves
from ...config._alterations import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC
from ...model._broker_state import BrokerState

_TYPES = (GROUP, CLIENT_METRICS, BROKER_LOGGER, BROKER, TOPIC)


@serves(api_keys.LIST_CONFIG_RESOURCES, 0, 1, only_responds=True)
async def handle(
    broker: BrokerState, request: ListConfigResourcesRequest, call: Call
) -> ListConfigResourcesResponse:
    requested = request.resource_types
    if call.version == 0:
        requested = [CLIENT_METRICS]
    if not set(_TYPES).issuperset(requested):
        return ListConfigResourcesResponse(error_code=error_codes.UNSUPPORTED_VERSION)
    call.expect(len(broker.topics))
    types = set(requested or _TYPES)
    found = [(type, name) for type in _TYPES if type in types for name in _names(broker, type)]
    resources = (ConfigResource(resource_type=type, resource_name=name) for type, name in found)
    return ListConfigResourcesResponse(config_resources=call.elements(resources, len(found)))


def _names(broker: BrokerState, type: int) -> list[str]:
    if type == TOPIC:
        return [topic.name for topic in broker.topics]
    if type in (BROKER, BROKER_LOGGER):
        return [str(node.node_id) for node in broker.cluster.live_nodes()]
    return []
