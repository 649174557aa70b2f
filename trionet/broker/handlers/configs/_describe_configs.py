"""Implements DescribeConfigs, versions 0 to 4, which returns settings with their sources.

A broker's loggers are described by their levels (KIP-412).

Gap: client metrics and groups have no settings here; describing them is an error.
"""

from __future__ import annotations

from ....errors import ApiError
from ....protocol import api_keys, error_codes
from ....protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from ...api._call import Call
from ...api._dispatch import serves
from ...config._alterations import BROKER, BROKER_LOGGER, TOPIC
from ...config._describe import (
    ConfigEntry,
    describe_all_brokers,
    describe_broker,
    describe_loggers,
    describe_topic,
)
from ...config._dynamic_config_store import ALL_BROKERS
from ...model._broker_state import BrokerState
from ...model._topic_registry import check_topic_name
from ._config_resources import check_broker_name, unknown_type

# About as many settings as a broker has; each resource is described in one step.
_ENTRIES = 300


@serves(api_keys.DESCRIBE_CONFIGS, 0, 4, only_responds=True)
async def handle(
    broker: BrokerState, request: DescribeConfigsRequest, call: Call
) -> DescribeConfigsResponse:
    call.expect(len(request.resources) * _ENTRIES)
    wanted: dict[object, DescribeConfigsResource] = {}
    for resource in request.resources:
        if call.must_pause():
            await call.pause()
        keys = resource.configuration_keys
        # Duplicates are described once (Kafka: each time). A request of 16 KB could name a resource
        # 2,000 times.
        name = resource.resource_type, resource.resource_name, frozenset(keys or ())
        wanted.setdefault(name, resource)
    results = (_describe(broker, request, resource) for resource in wanted.values())
    return DescribeConfigsResponse(results=call.elements(results, len(wanted)))


def _describe(
    broker: BrokerState, request: DescribeConfigsRequest, resource: DescribeConfigsResource
) -> DescribeConfigsResult:
    result = DescribeConfigsResult(
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        error_message=None,
    )
    try:
        entries = _entries(broker, resource)
    except ApiError as error:
        result.error_code = error.error_code
        result.error_message = error.message
        return result
    result.configs = [_entry(entry, request) for entry in entries]
    return result


def _entries(broker: BrokerState, resource: DescribeConfigsResource) -> list[ConfigEntry]:
    name = resource.resource_name
    keys = frozenset(resource.configuration_keys or ()) or None  # null or empty: all of them
    if resource.resource_type == TOPIC:
        check_topic_name(name)
        topic = broker.topics.get(name)
        if topic is None:
            raise ApiError(error_codes.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name!r} does not exist")
        return describe_topic(broker.settings, topic.configs, keys)
    if resource.resource_type == BROKER:
        if name == ALL_BROKERS:
            return describe_all_brokers(broker.settings, keys)
        check_broker_name(broker, name)
        return describe_broker(broker.settings, keys)
    if resource.resource_type == BROKER_LOGGER:
        check_broker_name(broker, name)
        return describe_loggers(broker.cluster.loggers.levels(), keys)
    raise unknown_type(resource.resource_type)


def _entry(entry: ConfigEntry, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    result = DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        is_default=entry.is_default,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        config_type=entry.type,
        documentation=entry.documentation if request.include_documentation else None,
    )
    if request.include_synonyms:
        result.synonyms = [
            DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
            for synonym in entry.synonyms
        ]
    return result
