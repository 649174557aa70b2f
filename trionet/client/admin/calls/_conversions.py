"""Conversions shared by admin calls: error codes, values, ids and partitions."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ....errors import ApiError, TrionetError
from ....protocol.error_codes import NONE
from ..._api_errors import api_error
from ..._argument_checks import items, mapping, names
from ..._topic_partition import TopicPartition

_ID_BYTES: Final = 16


def check(error_code: int, about: str, message: str | None = None) -> None:
    """Check the error code of a response.

    Raises:
        ApiError: the code is not NONE.
    """
    if error_code != NONE:
        raise api_error(error_code, about, message)


def failure(error_code: int, about: str, message: str | None = None) -> ApiError | None:
    """Return the error of one item; None if its error code is NONE."""
    return None if error_code == NONE else api_error(error_code, about, message)


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


def failures(topics: Iterable[Any]) -> dict[TopicPartition, TrionetError | None]:
    """Return the error of each partition in a response's topics; None for success."""
    found: dict[TopicPartition, TrionetError | None] = {}
    for topic in topics:
        for each in topic.partitions:
            key = TopicPartition(topic.name, each.partition_index)
            found[key] = failure(each.error_code, str(key))
    return found


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
