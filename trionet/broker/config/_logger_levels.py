"""The levels of the broker's loggers, as BROKER_LOGGER resources (KIP-412, KIP-1183).

Only trionet's loggers are included, not the loggers of the program that embeds the broker. Levels
have Kafka's names. As in Kafka, altered levels are not stored. When the broker stops, the original
levels are restored, since the program may go on running.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from ...errors import ApiError
from ...protocol.error_codes import INVALID_CONFIG, INVALID_REQUEST
from ._alterations import DELETE, SET, Operation

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

logger = logging.getLogger("trionet.broker")


class BrokerLoggers:
    """The levels of trionet's loggers; remembers the original levels of altered loggers."""

    def __init__(self) -> None:
        self._before: dict[logging.Logger, int] = {}

    def levels(self) -> dict[str, str]:
        """Return the effective levels by logger name."""
        return {name: level_name(each.getEffectiveLevel()) for name, each in _loggers().items()}

    def alter(self, operations: Sequence[Operation], *, validate_only: bool = False) -> None:
        """Set levels (SET), or let loggers inherit the level of their parent (DELETE).

        Args:
            operations: operations validated by :func:`._alterations.check_operations`.
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
            self._before.setdefault(each, each.level)
            each.setLevel(logging.NOTSET if level is None else LEVELS[level])
            logger.warning("log level of %s set to %s", name, level or "that of its parent")

    def restore(self) -> None:
        """Restore the original levels."""
        for each, level in self._before.items():
            each.setLevel(level)
        self._before.clear()


def level_name(level: int) -> str:
    """Return Kafka's name for the level, or for the next higher level that has a name."""
    return next((name for name, number in LEVELS.items() if number >= level), "FATAL")


def _loggers() -> dict[str, logging.Logger]:
    known = logging.Logger.manager.loggerDict
    return {ROOT: logging.getLogger(ROOT)} | {
        name: each
        for name, each in sorted(known.items())
        if name.startswith(f"{ROOT}.") and isinstance(each, logging.Logger)
    }


def _check(loggers: dict[str, logging.Logger], name: str, what: int, level: str | None) -> None:
    if what not in (SET, DELETE):
        raise ApiError(INVALID_REQUEST, f"{name}: the level of a logger can only be set or deleted")
    if name not in loggers:
        raise ApiError(
            INVALID_CONFIG, f"logger {name!r} does not exist; allowed: {', '.join(loggers)}"
        )
    if what == SET and level not in LEVELS:
        raise ApiError(
            INVALID_CONFIG, f"{name} = {level!r} is not a level; allowed: {', '.join(LEVELS)}"
        )
