"""Names in tests and in messages: APIs, errors, topics, partitions, groups, transactional ids.

An unknown name of an API, an error or a state raises an error that suggests the closest name.
Otherwise, a fault with a misspelled name would never apply, and the test would pass without testing
anything.

Kafka's messages share a structure: a list of items, each with a ``name``, ``topic`` or
``topic_id``, and with a list of partition numbers or of items with a partition number.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, Final

from .._util._text import nearest
from ..broker.groups._group import GroupState
from ..broker.transactions._transaction import TransactionState
from ..protocol import error_codes
from ..protocol._wire import NO_UUID, Message
from ..protocol.messages.metadata import MetadataRequest
from ..protocol.messages.registry import APIS

# pytest leaves the frames of this module out of its reports.
__tracebackhide__ = True

KEYS = {row[1]: key for key, row in APIS.items()}

ERRORS = {
    name: code
    for name, code in vars(error_codes).items()
    if name.isupper() and isinstance(code, int) and code != error_codes.NONE
}

NO_TRANSACTION: Final = "Dead"
"""The state of a transactional id that does not exist."""

TRANSACTION_STATES: Final = (*(state.value for state in TransactionState), NO_TRANSACTION)
GROUP_STATES: Final = tuple(state.value for state in GroupState)

# Former names of errors in Kafka and its clients.
_OLDER_NAMES: Final = {
    "NOT_LEADER_FOR_PARTITION": "NOT_LEADER_OR_FOLLOWER",
    "GROUP_LOAD_IN_PROGRESS": "COORDINATOR_LOAD_IN_PROGRESS",
    "GROUP_COORDINATOR_NOT_AVAILABLE": "COORDINATOR_NOT_AVAILABLE",
    "NOT_COORDINATOR_FOR_GROUP": "NOT_COORDINATOR",
}

ApiName = str | int
"""An API by Kafka's name, such as ``"Produce"``, or by its key."""

ErrorName = str | int
"""An error by Kafka's name, such as ``"NOT_LEADER_OR_FOLLOWER"``, or by its code."""


def api_key(api: ApiName) -> int:
    """Return the key of an API.

    Raises:
        ValueError: the API is unknown.
    """
    if isinstance(api, int):
        if api in APIS and not isinstance(api, bool):
            return api
        raise ValueError(f"unknown API key {api}; allowed: {min(APIS)} to {max(APIS)}, with gaps")
    if api not in KEYS:
        raise ValueError(f"unknown API {api!r}{nearest(api, KEYS)}")
    return KEYS[api]


def error_code(error: ErrorName) -> int:
    """Return the code of an error.

    Raises:
        ValueError: the error is unknown, or is NONE.
    """
    if isinstance(error, int):
        if error in ERRORS.values() and not isinstance(error, bool):
            return error
        raise ValueError(f"unknown error code {error}")
    error = _OLDER_NAMES.get(error, error)
    if error not in ERRORS:
        raise ValueError(f"unknown error {error!r}{nearest(error, ERRORS)}")
    return ERRORS[error]


def transaction_state(state: str) -> str:
    """Return the name of a transaction's state, or ``Dead``.

    Raises:
        ValueError: there is no such state.
    """
    return one_of("state", state, TRANSACTION_STATES)


def group_state(state: str) -> str:
    """Return the name of a consumer group's state; ``Dead`` is that of a group which is not there.

    Raises:
        ValueError: there is no such state.
    """
    return one_of("state", state, GROUP_STATES)


def one_of(what: str, name: str, known: Collection[str]) -> str:
    """Return a name that must be a known one.

    Args:
        what: what the name stands for, for the error message.
        name: the name.
        known: the names that are allowed.

    Raises:
        ValueError: the name is unknown; the message suggests the closest one, and lists all.
    """
    if name not in known:
        raise ValueError(
            f"unknown {what} {name!r}{nearest(name, known)}; allowed: {', '.join(known)}"
        )
    return name


TopicName = Callable[[bytes], str | None]
"""Maps a topic id to the topic's name; None if there is no such topic."""

_INDEXES = ("partition_index", "index", "partition")
# Lists of partitions, as opposed to lists of other numbers, such as replicas.
PARTITIONS = (
    "partitions",
    "partition_data",
    "partition_indexes",
    "partition_responses",
    "partition_results",
)
TOPIC_LISTS = (
    "topics",
    "topic_data",
    "topic_names",
    "resources",
    "responses",
    "forgotten_topics_data",
)
_NONE_FOR_ALL = ("topics", "topic_partitions")
_TOPIC_RESOURCE = 2
# The keys of FindCoordinator, which are groups or others (Kafka: CoordinatorType).
_COORDINATED = ("key", "coordinator_keys")
_GROUP = 0
_TRANSACTION = 1


def partition_of(item: object) -> int | None:
    """Return the partition number of an item; None if the item has no partition number."""
    if isinstance(item, int):
        return item
    for name in _INDEXES:
        index = getattr(item, name, None)
        if isinstance(index, int):
            return index
    return None


def topic_of(item: object, name_of: TopicName) -> str | None:
    """Return the topic of an item; None if it has no topic, or an unknown topic id."""
    if isinstance(item, str):
        return item
    topic_id = getattr(item, "topic_id", NO_UUID)
    if topic_id != NO_UUID:
        return name_of(bytes(topic_id))
    if getattr(item, "resource_type", None) == _TOPIC_RESOURCE:
        return str(getattr(item, "resource_name", ""))
    name = getattr(item, "name", None) or getattr(item, "topic", None)
    return name if isinstance(name, str) else None


def partitions_in(item: object) -> list[Any] | None:
    """Return the partitions in a topic's item; None if the item has no list of partitions."""
    for name in PARTITIONS:
        found = getattr(item, name, None)
        if isinstance(found, list):
            return found
    return None


def topic_partitions(message: Message, name_of: TopicName) -> Iterator[tuple[str, int | None]]:
    """Yield each topic and partition in a message; the partition is None if none is listed."""
    for name in message.__slots__:
        found = getattr(message, name)
        if not isinstance(found, list):
            continue
        for item in found:
            topic = topic_of(item, name_of)
            if topic is not None and name in TOPIC_LISTS:
                partitions = partitions_in(item) or ()
                for each in partitions:
                    yield topic, partition_of(each)
                if not partitions:
                    yield topic, None
            elif isinstance(item, Message):
                yield from topic_partitions(item, name_of)


def is_about_all(message: Message, version: int) -> bool:
    """Return whether a request is about all topics: the list is null, or empty in Metadata v0."""
    if isinstance(message, MetadataRequest) and version == 0:
        return not message.topics
    groups = getattr(message, "groups", None) or ()
    return any(
        getattr(each, name, ()) is None for each in (message, *groups) for name in _NONE_FOR_ALL
    )


def groups_in(message: Message) -> Iterator[str]:
    """Yield all consumer groups in a request."""
    for name in message.__slots__:
        found = getattr(message, name)
        if not found or (name in _COORDINATED and getattr(message, "key_type", _GROUP) != _GROUP):
            continue
        if name in ("group_id", "key"):
            yield found
        elif name in ("groups_names", "coordinator_keys"):
            yield from found
        elif name == "groups":
            for item in found:
                yield item if isinstance(item, str) else item.group_id


def transactional_ids_in(message: Message) -> Iterator[str]:
    """Yield all transactional ids in a request."""
    is_of_transactions = getattr(message, "key_type", _GROUP) == _TRANSACTION
    for name in message.__slots__:
        found = getattr(message, name)
        if not found:
            continue
        if name in ("transactional_id", "v3_and_below_transactional_id"):
            yield found
        elif name == "transactional_ids":
            yield from found
        elif name == "transactions":
            for item in found:
                yield item.transactional_id
        elif name in _COORDINATED and is_of_transactions:
            yield from [found] if isinstance(found, str) else found
