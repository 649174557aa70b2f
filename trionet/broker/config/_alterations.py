"""The operations of AlterConfigs and IncrementalAlterConfigs, on settings and on log levels.

(Kafka: ConfigAdminManager, ConfigurationControlManager; KIP-226, KIP-339.) They are only validated
and applied here, not stored.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar, Final, TypeAlias

from ..._util._logging import get_logger
from ...errors import ApiError
from ...protocol._wire import TEXT_BYTES_MAX
from ...protocol.error_codes import INVALID_CONFIG, INVALID_REQUEST

logger = get_logger("trionet.broker")

# Types of resources (Kafka: ConfigResource.Type).
TOPIC: Final = 2
BROKER: Final = 4
BROKER_LOGGER: Final = 8
CLIENT_METRICS: Final = 16
GROUP: Final = 32

SET, DELETE, APPEND, SUBTRACT = range(4)

# About as many keys as a broker with a dozen listeners has.
OPERATIONS_MAX = 2000

Operation: TypeAlias = tuple[str, int, str | None]
"""A key, the operation (SET, DELETE, APPEND or SUBTRACT), and the value."""

Change: TypeAlias = Callable[[Mapping[str, str]], dict[str, str]]
"""Returns the new settings of a resource, given its current ones."""

ListDefault: TypeAlias = Callable[[str], tuple[str, ...] | None]
"""Returns the default items of a list key; None if the key is not a list."""


def check_operation_count(count: int) -> None:
    """Reject a request with too many operations on one resource.

    Raises:
        ApiError: there are too many operations (INVALID_REQUEST).
    """
    if count > OPERATIONS_MAX:
        raise ApiError(
            INVALID_REQUEST,
            f"too many operations on one resource: {count}; at most {OPERATIONS_MAX} are allowed",
        )


def check_operations(operations: Sequence[Operation]) -> None:
    """Validate the operations on one resource of any type.

    Raises:
        ApiError: a key is repeated, a value is missing, an operation is unknown, or there are too
            many operations (INVALID_REQUEST).
    """
    check_operation_count(len(operations))
    twice = [key for key, count in Counter(each[0] for each in operations).items() if count > 1]
    if twice:
        raise ApiError(INVALID_REQUEST, "Error due to duplicate config keys")
    without = [key for key, what, value in operations if value is None and what != DELETE]
    if without:
        raise ApiError(INVALID_REQUEST, f"Null value not supported for : {', '.join(without)}")
    for key, what, _ in operations:
        if not SET <= what <= SUBTRACT:
            raise ApiError(
                INVALID_REQUEST,
                f"{key}: unknown operation {what}; allowed: 0 (set), 1 (delete), 2 (append) and"
                " 3 (subtract)",
            )


def applied(
    current: Mapping[str, str], operations: Iterable[Operation], list_default: ListDefault
) -> dict[str, str]:
    """Return a copy of the settings with validated operations applied.

    Args:
        current: the current settings.
        operations: at most one operation per key.
        list_default: returns the items that APPEND and SUBTRACT start from if a list key is not
            set. This is Kafka's default, not the effective value of the resource.

    Raises:
        ApiError: APPEND or SUBTRACT is used on a key that is not a list, or APPEND makes a list
            longer than any text in a message may be (INVALID_CONFIG).
    """
    settings = dict(current)
    for key, what, value in operations:
        if what == DELETE:
            settings.pop(key, None)
            continue
        assert value is not None  # by check_operations
        if what != SET:
            value = _combined(key, what, settings.get(key), value, list_default)
        settings[key] = value
    return settings


def _combined(key: str, what: int, old: str | None, value: str, list_default: ListDefault) -> str:
    default = list_default(key)
    if default is None:
        verb = "APPEND" if what == APPEND else "SUBTRACT"
        raise ApiError(INVALID_CONFIG, f"Can't {verb} to key {key} because its type is not LIST.")
    items = list(default) if old is None else [item for item in _split(old) if item]
    changed = dict.fromkeys(_split(value))  # a list may have thousands of items
    if what == APPEND:
        present = frozenset(items)
        items += [item for item in changed if item not in present]
        if len(",".join(items).encode()) > TEXT_BYTES_MAX:  # no response could describe it
            raise ApiError(
                INVALID_CONFIG,
                "The configuration value cannot be added because it exceeds the maximum value size"
                f" of {TEXT_BYTES_MAX} bytes.",  # Kafka's words
            )
    else:
        items = [item for item in items if item not in changed]
    return ",".join(items)


def _split(text: str) -> list[str]:
    return [item.strip() for item in text.split(",")]


ROOT = "trionet"
"""The name of the parent of all of trionet's loggers."""

LEVELS = {
    "TRACE": 5,  # has no name in Python
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}


class BrokerLoggers:
    """The levels of trionet's loggers, as BROKER_LOGGER resources (KIP-412, KIP-1183).

    Only trionet's loggers are included, not the loggers of the program that embeds the broker.
    Levels have Kafka's names. As in Kafka, altered levels are not stored. When the broker stops,
    the original levels are restored, since the program may go on running. Several brokers of a
    process share its loggers: a level lasts until the last broker that has altered it stops.
    """

    # Of each altered logger: the original level, and the brokers that have altered it.
    _altered: ClassVar[dict[logging.Logger, tuple[int, set[BrokerLoggers]]]] = {}

    def levels(self) -> dict[str, str]:
        """Return the effective levels by logger name."""
        return {name: level_name(each.getEffectiveLevel()) for name, each in _loggers().items()}

    def alter(self, operations: Sequence[Operation], *, validate_only: bool = False) -> None:
        """Set levels (SET), or let loggers inherit the level of their parent (DELETE).

        Args:
            operations: operations validated by :func:`check_operations`.
            validate_only: whether to validate the operations without applying them.

        Raises:
            ApiError: a logger or a level is unknown (INVALID_CONFIG), or the operation is not
                allowed for loggers (INVALID_REQUEST). Nothing was changed.
        """
        loggers = _loggers()
        for name, what, level in operations:
            _check(loggers, name, what, level)
        if validate_only:
            return
        for name, what, value in operations:
            # DELETE may come with a value; Kafka's tool sends an empty one.
            level = value if what == SET else None
            each = loggers[name]
            self._altered.setdefault(each, (each.level, set()))[1].add(self)
            each.setLevel(logging.NOTSET if level is None else LEVELS[level])
            logger.warning("log level of %s set to %s", name, level or "that of its parent")

    def restore(self) -> None:
        """Restore the original levels, except those that another broker has altered as well."""
        for each, (level, brokers) in list(self._altered.items()):
            brokers.discard(self)
            if not brokers:
                each.setLevel(level)
                del self._altered[each]


def level_name(level: int) -> str:
    """Return Kafka's name for the level, or for the next higher level that has a name."""
    return next((name for name, number in LEVELS.items() if number >= level), "FATAL")


def _loggers() -> dict[str, logging.Logger]:
    known = logging.Logger.manager.loggerDict
    return {ROOT: get_logger(ROOT)} | {
        name: each
        for name, each in sorted(known.items())
        if name.startswith(f"{ROOT}.") and isinstance(each, logging.Logger)
    }


def _check(loggers: dict[str, logging.Logger], name: str, what: int, level: str | None) -> None:
    """Reject what Kafka rejects, in its words, which programs compare (RuntimeLoggerManager)."""
    if what not in (SET, DELETE):
        verb = "APPEND" if what == APPEND else "SUBTRACT"
        raise ApiError(
            INVALID_REQUEST, f"{verb} operation is not allowed for the BROKER_LOGGER resource"
        )
    if name not in loggers:
        raise ApiError(
            INVALID_CONFIG,
            f"Logger {name} does not exist! The loggers are {', '.join(sorted(loggers))}",
        )
    if what == SET and level not in LEVELS:
        raise ApiError(
            INVALID_CONFIG,
            f"Cannot set the log level of {name} to {level} as it is not a supported log level."
            f" Valid log levels are {', '.join(sorted(LEVELS))}",
        )
    if what == DELETE and name == ROOT:
        # It would inherit the level of the program that embeds the broker.
        raise ApiError(
            INVALID_REQUEST, f"Removing the log level of the {name} logger is not allowed"
        )
