"""The resources of DescribeConfigs, AlterConfigs and IncrementalAlterConfigs requests.

(Kafka: ConfigAdminManager, ControllerConfigurationValidator.)
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

import attrs
import trio

from ....errors import ApiError
from ....protocol._config_types import LIST, Value
from ....protocol.error_codes import INVALID_REQUEST
from ...api._call import Call
from ...config._alterations import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    Change,
    ListDefault,
    Operation,
    applied,
    check_operations,
)
from ...config._broker_config import BROKER_KEYS
from ...config._dynamic_config_store import ALL_BROKERS
from ...config._topic_keys import TOPIC_KEYS
from ...model._broker_state import BrokerState
from ...model._topic_registry import check_topic_name
from ...storage._storage_errors import storage_errors

# Java's Integer.parseInt accepts a sign and any number of zeros. Longer names are rejected.
_NODE_ID = re.compile(r"[+-]?[0-9]{1,100}")
_NAME_SHOWN_MAX = 100

_NAMES = {CLIENT_METRICS: "client metrics", GROUP: "groups"}


Alter: TypeAlias = Callable[[int, str, Sequence[Operation]], Awaitable[None]]
"""Applies all operations to the resource of a type and name; if it raises ApiError, none."""


@attrs.frozen
class AlterResult:
    """The result for one resource of a request; the error code is 0 on success."""

    type: int
    name: str
    error_code: int = 0
    error_message: str | None = None


async def alter_each(
    resources: Sequence[tuple[int, str, Sequence[Operation]]], alter: Alter, call: Call
) -> list[AlterResult]:
    """Alter each resource of a request; an error does not affect the other resources.

    Args:
        resources: the type, name and operations of each resource. Repeated resources are rejected.
        alter: applies the operations to one resource.
        call: the call that handles the request.
    """
    counts: Counter[tuple[int, str]] = Counter()
    for type, name, _ in resources:
        if call.must_pause():
            await call.pause()
        counts[type, name] += 1
    results = []
    for type, name, operations in resources:
        await trio.lowlevel.checkpoint()  # a request may name thousands
        try:
            if counts[type, name] > 1:
                raise ApiError(
                    INVALID_REQUEST, "duplicate resource; specify each resource only once"
                )
            await alter(type, name, operations)
        except ApiError as error:
            results.append(AlterResult(type, name, error.error_code, error.message))
        else:
            results.append(AlterResult(type, name))
    return results


async def alter_incrementally(
    broker: BrokerState,
    type: int,
    name: str,
    operations: Sequence[Operation],
    *,
    validate_only: bool,
) -> None:
    """Apply all operations of IncrementalAlterConfigs to one resource, or none.

    Raises:
        ApiError: the resource does not exist or is not supported, or an operation is invalid.
    """
    check_operations(operations)
    if type == BROKER_LOGGER:
        check_broker_name(broker, name)
        broker.cluster.loggers.alter(operations, validate_only=validate_only)
        return

    def change(default: ListDefault) -> Change:
        return lambda current: applied(current, operations, default)

    await _alter(broker, type, name, change, operations, validate_only=validate_only)


async def replace_all(
    broker: BrokerState,
    type: int,
    name: str,
    operations: Sequence[Operation],
    *,
    validate_only: bool,
) -> None:
    """Replace all settings of one resource (AlterConfigs); keys without an operation are deleted.

    Args:
        broker: the node's state.
        type: the type of the resource.
        name: the name of the resource.
        operations: a SET operation for each new setting.
        validate_only: whether to validate the change without making it.

    Raises:
        ApiError: see :func:`alter_incrementally`; AlterConfigs does not support loggers.
    """
    check_operations(operations)
    if type == BROKER_LOGGER:
        raise unknown_type(BROKER_LOGGER)
    await _alter(
        broker,
        type,
        name,
        lambda default: lambda _: applied({}, operations, default),
        operations,
        validate_only=validate_only,
    )


async def _alter(
    broker: BrokerState,
    type: int,
    name: str,
    change: Callable[[ListDefault], Change],
    operations: Sequence[Operation],
    *,
    validate_only: bool,
) -> None:
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
            name = check_broker_name(broker, name)
        named = [key for key, _, _ in operations]
        with storage_errors():
            await broker.cluster.configs.alter(
                name, change(_broker_list), named, validate_only=validate_only
            )
    else:
        raise unknown_type(type)


def check_broker_name(broker: BrokerState, name: str) -> str:
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


def unknown_type(type: int) -> ApiError:
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
