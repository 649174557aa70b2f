"""What the calls of every family have in common."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ....errors import ApiError, TrionetError
from ....protocol.error_codes import NONE
from ..._api_errors import api_error
from ..._topic_partition import TopicPartition
from ..access._acl_operation import AclOperation
from ._argument_checks import items, mapping, names
from ._calls import Calls

_ID_BYTES: Final = 16
_NOT_TOLD: Final = -(2**31)


class AdminCalls:
    """A family of calls.

    Args:
        calls: the requests that they make.
    """

    def __init__(self, calls: Calls) -> None:
        self._calls = calls


def check(error_code: int, about: str, message: str | None = None) -> None:
    """Raise the error that an answer tells of, if it does.

    Raises:
        ApiError: the code is one of an error.
    """
    if error_code != NONE:
        raise api_error(error_code, about, message)


def failure(error_code: int, about: str, message: str | None = None) -> ApiError | None:
    """The error of one item; None if there is none."""
    return None if error_code == NONE else api_error(error_code, about, message)


Setting = str | int | float | bool | None
"""A value of a topic's or a broker's configuration; None is none at all."""


def setting_text(value: Setting) -> str | None:
    """How Kafka writes a value.

    Raises:
        TypeError: it is none that a setting can have.
    """
    if value is not None and not isinstance(value, str | int | float):
        raise TypeError(f"a setting is a text, a number, a truth value or None, not {value!r}")
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if value is None else str(value)


def id_bytes(text: str) -> bytes:
    """An id of Kafka's from its text.

    Raises:
        TypeError, ValueError: it is none.
    """
    if not isinstance(text, str):
        raise TypeError(f"an id is a text, not {text!r}")
    try:
        raw = base64.b64decode(text + "==", altchars=b"-_", validate=True)
    except ValueError:
        raw = b""
    if len(raw) != _ID_BYTES:
        raise ValueError(f"{text!r} is no id; one is 22 letters, digits, - and _")
    return raw


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """The numbers of partitions by their topics."""
    found: dict[str, list[int]] = {}
    for topic, partition in partitions:
        found.setdefault(topic, []).append(partition)
    return found


def failures(topics: Iterable[Any]) -> dict[TopicPartition, TrionetError | None]:
    """Why something failed, by partition, of an answer's topics; None where it did not."""
    found: dict[TopicPartition, TrionetError | None] = {}
    for topic in topics:
        for each in topic.partitions:
            key = TopicPartition(topic.name, each.partition_index)
            found[key] = failure(each.error_code, str(key))
    return found


def partitions_by_group(
    groups: Mapping[str, Iterable[TopicPartition] | None] | Iterable[str],
) -> dict[str, list[TopicPartition] | None]:
    """The groups that a caller gave, with their partitions; None for all.

    Raises:
        TypeError: it is something else; see :mod:`._argument_checks`.
    """
    if not isinstance(groups, Mapping):
        return dict.fromkeys(names(groups))
    # Lists: who is asked again is asked about the same.
    return {
        key: None if given is None else items(given, TopicPartition)
        for key, given in mapping(groups, str, object).items()
    }


def operations(bits: int) -> frozenset[AclOperation] | None:
    """What we may do, from the bits of an answer; None where it does not tell (KIP-430)."""
    if bits == _NOT_TOLD:
        return None
    return frozenset(each for each in AclOperation if each and bits >> each & 1)
