"""Implements the APIs of settings, which list, describe and alter the settings of resources.

(Kafka: ConfigAdminManager, ControllerConfigurationValidator.)
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias, TypeVar

import trio

from ...errors import ApiError
from ...protocol import api_keys
from ...protocol._config_types import LIST, Value
from ...protocol.error_codes import INVALID_REQUEST, UNSUPPORTED_VERSION
from ...protocol.messages import alter_configs, describe_configs, list_config_resources
from ...protocol.messages import incremental_alter_configs as incremental
from ..api._call import Call
from ..api._dispatch import serves
from ..config._alterations import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    GROUP,
    OPERATIONS_MAX,
    SET,
    TOPIC,
    Change,
    ListDefault,
    Operation,
    applied,
    check_operations,
)
from ..config._broker_config import BROKER_KEYS
from ..config._describe import (
    ConfigEntry,
    describe_all_brokers,
    describe_broker,
    describe_loggers,
    describe_topic,
)
from ..config._dynamic_config_store import ALL_BROKERS
from ..config._key_meanings import broker_documentation, topic_documentation
from ..config._topic_keys import TOPIC_KEYS
from ..model._broker_state import BrokerState
from ..model._topic_registry import check_topic_name, unknown_topic
from ..storage._storage_errors import storage_errors

_TYPES = (GROUP, CLIENT_METRICS, BROKER_LOGGER, BROKER, TOPIC)
_NAMES = {CLIENT_METRICS: "client metrics", GROUP: "groups"}
# About as many settings as a broker has; each resource is described in one step.
_ENTRIES = 300
# Java's Integer.parseInt accepts a sign and any number of zeros. Longer names are rejected.
_NODE_ID = re.compile(r"[+-]?[0-9]{1,100}")
_NAME_SHOWN_MAX = 100

_Resource: TypeAlias = alter_configs.AlterConfigsResource | incremental.AlterConfigsResource
R = TypeVar("R", alter_configs.AlterConfigsResource, incremental.AlterConfigsResource)


@serves(api_keys.LIST_CONFIG_RESOURCES, 0, 1, only_responds=True)
async def handle_list_config_resources(
    broker: BrokerState, request: list_config_resources.ListConfigResourcesRequest, call: Call
) -> list_config_resources.ListConfigResourcesResponse:
    """Handle ListConfigResources, versions 0 and 1, which lists configurable resources (KIP-1142).

    Version 0 is ListClientMetricsResources, whose response is empty, since the broker does not
    support client metrics (KIP-714). Version 1 lists no groups, since they have no settings here.
    """
    requested = request.resource_types
    if call.version == 0:
        requested = [CLIENT_METRICS]
    if not set(_TYPES).issuperset(requested):
        return list_config_resources.ListConfigResourcesResponse(error_code=UNSUPPORTED_VERSION)
    call.expect(len(broker.topics))
    types = set(requested or _TYPES)
    found = [(type, name) for type in _TYPES if type in types for name in _names(broker, type)]
    resources = (
        list_config_resources.ConfigResource(resource_type=type, resource_name=name)
        for type, name in found
    )
    return list_config_resources.ListConfigResourcesResponse(
        config_resources=call.elements(resources, len(found))
    )


def _names(broker: BrokerState, type: int) -> list[str]:
    if type == TOPIC:
        return [topic.name for topic in broker.topics]
    if type in (BROKER, BROKER_LOGGER):
        return [str(node.node_id) for node in broker.cluster.live_nodes()]
    return []


@serves(api_keys.DESCRIBE_CONFIGS, 0, 4, only_responds=True)
async def handle_describe_configs(
    broker: BrokerState, request: describe_configs.DescribeConfigsRequest, call: Call
) -> describe_configs.DescribeConfigsResponse:
    """Handle DescribeConfigs, versions 0 to 4, which returns settings with their sources.

    A broker's loggers are described by their levels (KIP-412).

    Gap: client metrics and groups have no settings here; describing them is an error.
    """
    call.expect(len(request.resources) * _ENTRIES)
    wanted: dict[object, describe_configs.DescribeConfigsResource] = {}
    for resource in request.resources:
        if call.must_pause():
            await call.pause()
        keys = resource.configuration_keys
        # Duplicates are described once (Kafka: each time). A request of 16 KB could name a resource
        # 2,000 times.
        name = resource.resource_type, resource.resource_name, frozenset(keys or ())
        wanted.setdefault(name, resource)
    results = (_describe(broker, request, resource) for resource in wanted.values())
    return describe_configs.DescribeConfigsResponse(results=call.elements(results, len(wanted)))


def _describe(
    broker: BrokerState,
    request: describe_configs.DescribeConfigsRequest,
    resource: describe_configs.DescribeConfigsResource,
) -> describe_configs.DescribeConfigsResult:
    result = describe_configs.DescribeConfigsResult(
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
    result.configs = [_entry(entry, request, resource.resource_type) for entry in entries]
    return result


def _entries(
    broker: BrokerState, resource: describe_configs.DescribeConfigsResource
) -> list[ConfigEntry]:
    name = resource.resource_name
    keys = frozenset(resource.configuration_keys or ()) or None  # null or empty: all of them
    if resource.resource_type == TOPIC:
        check_topic_name(name)
        topic = broker.topics.get(name)
        if topic is None:
            raise unknown_topic(name)
        return describe_topic(broker.settings, topic.configs, keys)
    if resource.resource_type == BROKER:
        if name == ALL_BROKERS:
            return describe_all_brokers(broker.settings, keys)
        _check_broker_name(broker, name)
        return describe_broker(broker.settings, keys)
    if resource.resource_type == BROKER_LOGGER:
        _check_broker_name(broker, name)
        return describe_loggers(broker.cluster.loggers.levels(), keys)
    raise _unknown_type(resource.resource_type)


def _entry(
    entry: ConfigEntry, request: describe_configs.DescribeConfigsRequest, type: int
) -> describe_configs.DescribeConfigsResourceResult:
    result = describe_configs.DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        is_default=entry.is_default,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        config_type=entry.type,
        documentation=_documentation(entry.name, type) if request.include_documentation else None,
    )
    if request.include_synonyms:
        result.synonyms = [
            describe_configs.DescribeConfigsSynonym(
                name=synonym.name, value=synonym.value, source=synonym.source
            )
            for synonym in entry.synonyms
        ]
    return result


def _documentation(key: str, type: int) -> str | None:
    if type == TOPIC:
        return topic_documentation(key)
    return broker_documentation(key) if type == BROKER else None


@serves(api_keys.ALTER_CONFIGS, 0, 2)
async def handle_alter_configs(
    broker: BrokerState, request: alter_configs.AlterConfigsRequest, call: Call
) -> alter_configs.AlterConfigsResponse:
    """Handle AlterConfigs, versions 0 to 2, which replaces all settings of a resource.

    Gap: client metrics and groups have no settings; altering them is an error. Loggers can only be
    altered by IncrementalAlterConfigs, as in Kafka.
    """

    async def replace_all(resource: alter_configs.AlterConfigsResource) -> None:
        some = resource.configs[: OPERATIONS_MAX + 1]  # more are rejected
        operations = [(each.name, SET, each.value) for each in some]
        check_operations(operations)

        def change(default: ListDefault) -> Change:
            return lambda _: applied({}, operations, default)

        await _alter(broker, resource, operations, change, validate_only=request.validate_only)

    kind = alter_configs.AlterConfigsResourceResponse
    return alter_configs.AlterConfigsResponse(
        responses=await _alter_each(request.resources, replace_all, kind, call)
    )


@serves(api_keys.INCREMENTAL_ALTER_CONFIGS, 0, 1)
async def handle_incremental_alter_configs(
    broker: BrokerState, request: incremental.IncrementalAlterConfigsRequest, call: Call
) -> incremental.IncrementalAlterConfigsResponse:
    """Handle IncrementalAlterConfigs, versions 0 and 1, which alters individual keys.

    Gap: client metrics and groups have no settings; altering them is an error.
    """

    async def alter(resource: incremental.AlterConfigsResource) -> None:
        some = resource.configs[: OPERATIONS_MAX + 1]  # more are rejected
        operations = [(each.name, each.config_operation, each.value) for each in some]
        check_operations(operations)
        if resource.resource_type == BROKER_LOGGER:
            _check_broker_name(broker, resource.resource_name)
            broker.cluster.loggers.alter(operations, validate_only=request.validate_only)
            return

        def change(default: ListDefault) -> Change:
            return lambda current: applied(current, operations, default)

        await _alter(broker, resource, operations, change, validate_only=request.validate_only)

    kind = incremental.AlterConfigsResourceResponse
    return incremental.IncrementalAlterConfigsResponse(
        responses=await _alter_each(request.resources, alter, kind, call)
    )


async def _alter_each(
    resources: Sequence[R],
    alter: Callable[[R], Awaitable[None]],
    kind: Callable[..., Any],
    call: Call,
) -> Any:
    """Alter each resource of a request; an error does not affect the other resources.

    Args:
        resources: the resources of the request. Repeated resources are rejected.
        alter: alters one resource; if it raises ApiError, nothing has changed.
        kind: the class of the results.
        call: the call that handles the request.

    Returns:
        The array of results.
    """
    call.expect(len(resources))
    counts: Counter[tuple[int, str]] = Counter()
    for resource in resources:
        if call.must_pause():
            await call.pause()
        counts[resource.resource_type, resource.resource_name] += 1
    results = []
    for resource in resources:
        await trio.lowlevel.checkpoint()  # a request may name thousands
        type, name = resource.resource_type, resource.resource_name
        result = kind(resource_type=type, resource_name=name, error_message=None)
        try:
            if counts[type, name] > 1:
                raise ApiError(
                    INVALID_REQUEST, "duplicate resource; specify each resource only once"
                )
            await alter(resource)
        except ApiError as error:
            result.error_code, result.error_message = error.error_code, error.message
        results.append(result)
    return call.elements(results, len(results))


async def _alter(
    broker: BrokerState,
    resource: _Resource,
    operations: Sequence[Operation],
    change: Callable[[ListDefault], Change],
    *,
    validate_only: bool,
) -> None:
    """Apply all operations to a topic or broker, or none.

    Raises:
        ApiError: the resource does not exist or is not supported, or an operation is invalid.
    """
    type, name = resource.resource_type, resource.resource_name
    if type == TOPIC:
        if not name:
            raise ApiError(
                INVALID_REQUEST,
                "the topic name is empty; to set defaults for all topics, alter the broker",
            )
        check_topic_name(name)
        await broker.cluster.alter_topic(name, change(_topic_list), validate_only=validate_only)
    elif type == BROKER:
        if name != ALL_BROKERS:
            name = _check_broker_name(broker, name)
        named = [key for key, _, _ in operations]
        with storage_errors():
            await broker.cluster.configs.alter(
                name, change(_broker_list), named, validate_only=validate_only
            )
    else:
        raise _unknown_type(type)


def _check_broker_name(broker: BrokerState, name: str) -> str:
    """Return the canonical resource name of this broker, its node id.

    Raises:
        ApiError: the name belongs to another broker, or is not a node id (INVALID_REQUEST).
    """
    if _NODE_ID.fullmatch(name) is None:
        raise ApiError(
            INVALID_REQUEST,
            f"invalid broker name {name[:_NAME_SHOWN_MAX]!r}; a broker's name is its node id, a"
            " number from 0 to 2147483647",
        )
    if int(name) != broker.node_id:
        raise ApiError(INVALID_REQUEST, f"this is broker {broker.node_id}, not {name}")
    return str(broker.node_id)


def _unknown_type(type: int) -> ApiError:
    """Return the error for a resource type that cannot be described or altered."""
    what = _NAMES.get(type, f"resource type {type}")
    return ApiError(
        INVALID_REQUEST,
        f"{what}: not supported; topics ({TOPIC}) and brokers ({BROKER}) have settings, and"
        f" the loggers of a broker ({BROKER_LOGGER}) have levels, which IncrementalAlterConfigs"
        " sets",
    )


def _topic_list(key: str) -> tuple[str, ...] | None:
    row = TOPIC_KEYS.get(key)
    return None if row is None or row.kind != LIST else _items(row.default)


def _broker_list(key: str) -> tuple[str, ...] | None:
    row = BROKER_KEYS.get(key)
    return None if row is None or row[1] != LIST else _items(row[2])


def _items(default: Value) -> tuple[str, ...]:
    return default if isinstance(default, tuple) else ()
