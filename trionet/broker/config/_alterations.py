"""What AlterConfigs and IncrementalAlterConfigs do to the settings of a resource: pure.

(Kafka: ConfigAdminManager, ConfigurationControlManager; KIP-226, KIP-339.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from ...errors import ApiError
from ...protocol.error_codes import INVALID_CONFIG, INVALID_REQUEST

SET, DELETE, APPEND, SUBTRACT = range(4)

# A broker with a dozen listeners has about so many keys.
OPERATIONS_MAX = 2000

Operation: TypeAlias = tuple[str, int, str | None]
"""A key, what to do with it (SET, DELETE, APPEND or SUBTRACT), and the value for that."""

Change: TypeAlias = Callable[[Mapping[str, str]], dict[str, str]]
"""From the settings that a resource has to those that it is to have."""

ListDefault: TypeAlias = Callable[[str], tuple[str, ...] | None]
"""The items that a key has by default; None for one that is no list."""


def check_operation_count(count: int) -> None:
    """Whether a request may do so much to one resource.

    Raises:
        ApiError: INVALID_REQUEST.
    """
    if count > OPERATIONS_MAX:
        raise ApiError(
            INVALID_REQUEST, f"{count} settings of one resource; allowed: {OPERATIONS_MAX}"
        )


def check_operations(operations: Sequence[Operation]) -> None:
    """What a request may do to one resource, whatever it is.

    Raises:
        ApiError: INVALID_REQUEST: a key comes twice, a value is missing, or an operation is
            unknown; or there are more than any resource has settings.
    """
    check_operation_count(len(operations))
    twice = [key for key, count in Counter(each[0] for each in operations).items() if count > 1]
    if twice:
        raise ApiError(INVALID_REQUEST, f"{', '.join(twice)}: each key may come once")
    without = [key for key, what, value in operations if value is None and what != DELETE]
    if without:
        raise ApiError(INVALID_REQUEST, f"{', '.join(without)}: a value is missing")
    for key, what, _ in operations:
        if not SET <= what <= SUBTRACT:
            raise ApiError(
                INVALID_REQUEST,
                f"{key}: there is no operation {what}; allowed: 0 to set, 1 to delete, 2 to append"
                " and 3 to subtract",
            )


def applied(
    current: Mapping[str, str], operations: Iterable[Operation], list_default: ListDefault
) -> dict[str, str]:
    """The settings after checked operations.

    Args:
        current: the settings before.
        operations: each on another key.
        list_default: what a key is appended to, or subtracted from, that is not set. It is Kafka's
            default, not what counts for the resource.

    Raises:
        ApiError: INVALID_CONFIG: a key that is no list is appended to or subtracted from.
    """
    settings = dict(current)
    for key, what, value in operations:
        if what == DELETE:
            settings.pop(key, None)
            continue
        assert value is not None  # it was checked
        if what != SET:
            value = _combined(key, what, settings.get(key), value, list_default)
        settings[key] = value
    return settings


def _combined(key: str, what: int, old: str | None, value: str, list_default: ListDefault) -> str:
    default = list_default(key)
    if default is None:
        verb = "appended to" if what == APPEND else "subtracted from"
        raise ApiError(INVALID_CONFIG, f"{key} is no list and cannot be {verb}; set it")
    items = list(default) if old is None else [item for item in _split(old) if item]
    given = dict.fromkeys(_split(value))  # a list may have 100,000 items
    if what == APPEND:
        there = frozenset(items)
        items += [item for item in given if item not in there]
    else:
        items = [item for item in items if item not in given]
    return ",".join(items)


def _split(text: str) -> list[str]:
    return [item.strip() for item in text.split(",")]
