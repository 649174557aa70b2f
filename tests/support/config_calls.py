"""Calls that alter and describe settings, in short, and what they respond, as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from support.client import Client
from trionet.protocol.messages import alter_configs, describe_configs, incremental_alter_configs

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)

# Where a value comes from.
OF_TOPIC, OF_BROKER, OF_ALL_BROKERS, STATIC, DEFAULT, OF_LOGGER = range(1, 7)

Operation = tuple[str, int, str | None]
Resource = tuple[int, str, Sequence[Operation]]


class Setting(NamedTuple):
    """One setting as DescribeConfigs tells it."""

    value: str | None
    source: int
    synonyms: tuple[tuple[str, str | None, int], ...]


def sets(**settings: object) -> list[Operation]:
    """Operations that set keys, named with underscores for dots."""
    return [(key.replace("_", "."), SET, str(value)) for key, value in settings.items()]


def incremental_request(
    *resources: Resource, validate_only: bool = False
) -> incremental_alter_configs.IncrementalAlterConfigsRequest:
    return incremental_alter_configs.IncrementalAlterConfigsRequest(
        validate_only=validate_only,
        resources=[
            incremental_alter_configs.AlterConfigsResource(
                resource_type=type,
                resource_name=name,
                configs=[
                    incremental_alter_configs.AlterableConfig(
                        name=key, config_operation=operation, value=value
                    )
                    for key, operation, value in operations
                ],
            )
            for type, name, operations in resources
        ],
    )


async def alter_each(
    client: Client, *resources: Resource, validate_only: bool = False, version: int = 1
) -> list[tuple[int, str, int, str | None]]:
    """IncrementalAlterConfigs: type, name, error code and message of each resource."""
    answer = await client.call(
        incremental_request(*resources, validate_only=validate_only), version
    )
    return [
        (each.resource_type, each.resource_name, each.error_code, each.error_message)
        for each in answer.responses
    ]


async def alter(
    client: Client,
    type: int,
    name: str,
    *operations: Operation,
    validate_only: bool = False,
    version: int = 1,
) -> tuple[int, str]:
    """IncrementalAlterConfigs for one resource: the error code and the message."""
    [(_, _, code, message)] = await alter_each(
        client, (type, name, operations), validate_only=validate_only, version=version
    )
    assert bool(code) == bool(message)
    return code, message or ""


async def put(client: Client, type: int, name: str, **settings: object) -> None:
    """Set keys of a resource, named with underscores for dots; it must succeed."""
    assert (0, "") == await alter(client, type, name, *sets(**settings))


async def delete(client: Client, type: int, name: str, *keys: str) -> None:
    """Delete keys of a resource; it must succeed."""
    assert (0, "") == await alter(client, type, name, *((key, DELETE, None) for key in keys))


async def alter_all(
    client: Client,
    type: int,
    name: str,
    settings: Mapping[str, str | None] | Sequence[tuple[str, str | None]],
    *,
    validate_only: bool = False,
    version: int = 2,
) -> tuple[int, str]:
    """AlterConfigs for one resource: the error code and the message."""
    pairs = list(settings.items() if isinstance(settings, Mapping) else settings)
    request = alter_configs.AlterConfigsRequest(
        validate_only=validate_only,
        resources=[
            alter_configs.AlterConfigsResource(
                resource_type=type,
                resource_name=name,
                configs=[
                    alter_configs.AlterableConfig(name=key, value=value) for key, value in pairs
                ],
            )
        ],
    )
    [result] = (await client.call(request, version)).responses
    assert (type, name) == (result.resource_type, result.resource_name)
    return result.error_code, result.error_message or ""


async def settings_of(client: Client, type: int, name: str, *keys: str) -> dict[str, Setting]:
    """DescribeConfigs for one resource, by key; it must succeed."""
    resource = describe_configs.DescribeConfigsResource(
        resource_type=type, resource_name=name, configuration_keys=list(keys) or None
    )
    request = describe_configs.DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    [result] = (await client.call(request, 4)).results
    assert 0 == result.error_code, result.error_message
    return {
        entry.name: Setting(
            entry.value,
            entry.config_source,
            tuple((each.name, each.value, each.source) for each in entry.synonyms),
        )
        for entry in result.configs
    }


async def value_of(client: Client, type: int, name: str, key: str) -> tuple[str | None, int]:
    """One setting and its source."""
    setting = (await settings_of(client, type, name, key))[key]
    return setting.value, setting.source
