"""Conversions shared by admin calls: error codes, partitions, values, ids and enums."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import Any, Final, Protocol, TypeVar

from ...errors import ApiError, TrionetError
from ...protocol.error_codes import NONE
from .._api_errors import api_error
from .._argument_checks import items, mapping, names
from .._topic_partition import TopicPartition, by_topic

T = TypeVar("T")
V = TypeVar("V")

_ID_BYTES: Final = 16
_NOT_SENT: Final = -(2**31)


# Errors.


class Coded(Protocol):
    """A response, or an item in one, with an error code; most also have an ``error_message``."""

    error_code: int


def failure(result: Coded, about: object) -> ApiError | None:
    """Return the error of a response or of one item in it; None if its error code is NONE.

    Args:
        result: the response or the item.
        about: the subject of the error.
    """
    if result.error_code == NONE:
        return None
    return api_error(result.error_code, str(about), getattr(result, "error_message", None))


def check(result: Coded, about: object) -> None:
    """Check the error code of a response; see :func:`failure`.

    Raises:
        ApiError: the code is not NONE.
    """
    if error := failure(result, about):
        raise error


# Partitions.


def by_partition(
    topics: Iterable[Any], value: Callable[[Any], V]
) -> dict[TopicPartition, V | TrionetError]:
    """Return the error of each partition in a response's topics, or its converted value."""
    found: dict[TopicPartition, V | TrionetError] = {}
    for topic in topics:
        # Kafka's messages spell it in two ways.
        name = topic.topic_name if hasattr(topic, "topic_name") else topic.name
        for each in topic.partitions:
            key = TopicPartition(name, each.partition_index)
            found[key] = failure(each, key) or value(each)
    return found


def failures(topics: Iterable[Any]) -> dict[TopicPartition, TrionetError | None]:
    """Return the error of each partition in a response's topics; None for success."""
    return by_partition(topics, lambda _: None)


def topics_of(
    keys: Iterable[TopicPartition],
    topic: Callable[..., T],
    partition: Callable[[TopicPartition], object],
) -> list[T]:
    """Return the topics of a request, for APIs that take more of a partition than its number.

    Args:
        keys: the partitions.
        topic: the class of a topic in the request.
        partition: converts a partition for the request.
    """
    return [
        topic(name=name, partitions=[partition(TopicPartition(name, n)) for n in numbers])
        for name, numbers in by_topic(keys).items()
    ]


def partitions_by_group(
    groups: Mapping[str, Iterable[TopicPartition] | None] | Iterable[str],
) -> dict[str, list[TopicPartition] | None]:
    """Convert a ``groups`` argument to the partitions of each group; None for all partitions.

    Raises:
        TypeError: the argument has the wrong type.
    """
    if not isinstance(groups, Mapping):
        return dict.fromkeys(names(groups))
    # Lists, not iterators: a retry needs the same partitions again.
    return {
        key: None if value is None else items(value, TopicPartition)
        for key, value in mapping(groups, str, object).items()
    }


# Values and ids.

Setting = str | int | float | bool | None
"""A value in the configuration of a topic or broker; None if no value is set."""


def setting_text(value: Setting) -> str | None:
    """Convert a value to Kafka's string form.

    Raises:
        TypeError: values of this type are not supported.
    """
    if value is not None and not isinstance(value, str | int | float):
        raise TypeError(f"a setting must be a str, int, float, bool or None, not {value!r}")
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if value is None else str(value)


def id_bytes(text: str) -> bytes:
    """Parse the base64 form of a 16-byte id.

    Raises:
        TypeError, ValueError: the id is invalid.
    """
    if not isinstance(text, str):
        raise TypeError(f"an id must be a str, not {text!r}")
    try:
        raw = base64.b64decode(text + "==", altchars=b"-_", validate=True)
    except ValueError:
        raw = b""
    if len(raw) != _ID_BYTES:
        raise ValueError(f"invalid id {text!r}: expected a URL-safe base64 string of 22 characters")
    return raw


def known(number: int) -> int | None:
    """Return a number of a response; None for a negative one, which means unknown."""
    return None if number < 0 else number


# Enums.


class WireEnum(IntEnum):
    """An enum that decodes unknown numbers as UNKNOWN, as Kafka's own client does."""

    @classmethod
    def _missing_(cls, value: object) -> WireEnum | None:
        return cls["UNKNOWN"] if isinstance(value, int) else None


class AclOperation(WireEnum):
    """An operation on a resource; the values are Kafka's numbers."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


def operations(bits: int) -> frozenset[AclOperation] | None:
    """Decode a bit field of permitted operations (KIP-430); None if it was not sent."""
    if bits == _NOT_SENT:
        return None
    return frozenset(each for each in AclOperation if each and bits >> each & 1)
