"""What can be altered, by the type of the resource: topics, brokers and loggers.

(Kafka: ConfigAdminManager and ControllerConfigurationValidator.)
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

import attrs
import trio

from ...errors import ApiError
from ...protocol._config_types import LIST, Value
from ...protocol.error_codes import INVALID_REQUEST
from ..api._call import Call
from ..config._alterations import Change, ListDefault, Operation, applied, check_operations
from ..config._broker_config import BROKER_KEYS
from ..config._dynamic_config_store import OF_ALL
from ..config._topic_keys import TOPIC_KEYS
from ..model._broker_state import BrokerState
from ..model._topic_registry import check_topic_name
from ..storage._storage_errors import storage_errors

TOPIC = 2
BROKER = 4
BROKER_LOGGER = 8
CLIENT_METRICS = 16
GROUP = 32

# Java's Integer.parseInt takes a sign, and any number of zeros; so many are nobody's node id.
_NODE_ID = re.compile(r"[+-]?[0-9]{1,100}")
_NAME_SHOWN_MAX = 100

_NAMES = {CLIENT_METRICS: "client metrics", GROUP: "groups"}


Alter: TypeAlias = Callable[[int, str, Sequence[Operation]], Awaitable[None]]
"""Alters the resource of a type and a name, all of it or nothing, or raises an ApiError."""


@attrs.frozen
class Outcome:
    """What became of one resource of a request: its error code, 0 for none, and why."""

    type: int
    name: str
    error_code: int = 0
    error_message: str | None = None


async def alter_each(
    resources: Sequence[tuple[int, str, Sequence[Operation]]], alter: Alter, call: Call
) -> list[Outcome]:
    """Alter the resources of a request one after the other, each by itself.

    Args:
        resources: the type, the name and what is to be done. One that comes twice is not altered.
        alter: does it.
        call: whose request it is.
    """
    counts: Counter[tuple[int, str]] = Counter()
    for type, name, _ in resources:
        if call.must_pause():
            await call.pause()
        counts[type, name] += 1
    outcomes = []
    for type, name, operations in resources:
        await trio.lowlevel.checkpoint()  # there may be thousands
        try:
            if counts[type, name] > 1:
                raise ApiError(INVALID_REQUEST, "each resource may come once")
            await alter(type, name, operations)
        except ApiError as error:
            outcomes.append(Outcome(type, name, error.error_code, error.message))
        else:
            outcomes.append(Outcome(type, name))
    return outcomes


async def alter_step_by_step(
    broker: BrokerState,
    type: int,
    name: str,
    operations: Sequence[Operation],
    *,
    validate_only: bool,
) -> None:
    """IncrementalAlterConfigs for one resource: all of it, or nothing.

    Raises:
        ApiError: with Kafka's error code; says what is wrong.
    """
    check_operations(operations)
    if type == BROKER_LOGGER:
        check_broker_name(broker, name)
        broker.cluster.loggers.alter(operations, validate_only=validate_only)
        return

    def change(default: ListDefault) -> Change:
        return lambda current: applied(current, operations, default)

    await _alter(broker, type, name, change, operations, validate_only=validate_only)


async def alter_all(
    broker: BrokerState,
    type: int,
    name: str,
    operations: Sequence[Operation],
    *,
    validate_only: bool,
) -> None:
    """AlterConfigs for one resource: what is not named goes back to its default.

    Args:
        broker: the broker.
        type: of the resource.
        name: of the resource.
        operations: SET, for each setting that the resource is to have.
        validate_only: check, and change nothing.

    Raises:
        ApiError: as :func:`alter_step_by_step`; the type for loggers is unknown to it.
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
            raise ApiError(INVALID_REQUEST, "there are no settings of all topics; set the broker's")
        check_topic_name(name)
        await broker.cluster.alter_topic(name, change(_topic_list), validate_only=validate_only)
    elif type == BROKER:
        if name != OF_ALL:
            name = check_broker_name(broker, name)
        named = [key for key, _, _ in operations]
        with storage_errors():
            await broker.cluster.configs.alter(
                name, change(_broker_list), named, validate_only=validate_only
            )
    else:
        raise unknown_type(type)


def check_broker_name(broker: BrokerState, name: str) -> str:
    """The name of this broker as it is written: its node id.

    Raises:
        ApiError: INVALID_REQUEST: it is the name of another one, or none.
    """
    if _NODE_ID.fullmatch(name) is None:
        raise ApiError(
            INVALID_REQUEST,
            f"a broker's name is its node id, and {name[:_NAME_SHOWN_MAX]!r} is no number from 0 to"
            " 2147483647",
        )
    if int(name) != broker.node_id:
        raise ApiError(INVALID_REQUEST, f"this is broker {broker.node_id}, not {name}")
    return str(broker.node_id)


def unknown_type(type: int) -> ApiError:
    """What is wrong with a resource of this type."""
    what = _NAMES.get(type, f"resource type {type}")
    return ApiError(
        INVALID_REQUEST,
        f"{what}: no settings here; topics ({TOPIC}) and brokers ({BROKER}) have some, and the"
        f" loggers of a broker ({BROKER_LOGGER}) levels, which IncrementalAlterConfigs sets",
    )


def _topic_list(key: str) -> tuple[str, ...] | None:
    row = TOPIC_KEYS.get(key)
    return None if row is None or row.kind != LIST else _items(row.default)


def _broker_list(key: str) -> tuple[str, ...] | None:
    row = BROKER_KEYS.get(key)
    return None if row is None or row[1] != LIST else _items(row[2])


def _items(default: Value) -> tuple[str, ...]:
    return default if isinstance(default, tuple) else ()
