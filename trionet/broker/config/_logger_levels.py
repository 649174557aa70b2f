"""The loggers of the broker and their levels, as BROKER_LOGGER resources (KIP-412, KIP-1183).

Only those of trionet: the program around the broker has loggers of its own. Levels have Kafka's
names. As in Kafka they are not stored; here they also go back when the broker ends, since the
program may go on.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from ...errors import ApiError
from ...protocol.error_codes import INVALID_CONFIG, INVALID_REQUEST
from ._alterations import DELETE, SET, Operation

ROOT = "trionet"
"""The logger above all of trionet's."""

LEVELS = {
    "TRACE": 5,  # Python has no name for it
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}

logger = logging.getLogger("trionet.broker")


class BrokerLoggers:
    """The levels of trionet's loggers, and what they were before they were altered."""

    def __init__(self) -> None:
        self._before: dict[logging.Logger, int] = {}

    def levels(self) -> dict[str, str]:
        """The level that counts for each logger, by its name."""
        return {name: level_name(each.getEffectiveLevel()) for name, each in _loggers().items()}

    def alter(self, operations: Sequence[Operation], *, validate_only: bool = False) -> None:
        """Set levels, or have loggers follow the one above them.

        Args:
            operations: checked by :func:`._alterations.check_operations`.
            validate_only: check, and change nothing.

        Raises:
            ApiError: a logger or a level is unknown (INVALID_CONFIG), or the operation is not for
                loggers (INVALID_REQUEST); nothing was changed.
        """
        loggers = _loggers()
        for name, what, level in operations:
            _check(loggers, name, what, level)
        if validate_only:
            return
        for name, what, value in operations:
            # What is deleted may come with a value, as an empty one from Kafka's tool.
            level = value if what == SET else None
            each = loggers[name]
            self._before.setdefault(each, each.level)
            each.setLevel(logging.NOTSET if level is None else LEVELS[level])
            logger.warning("the log level of %s is %s", name, level or "that of the one above")

    def restore(self) -> None:
        """Give the loggers the levels that they had."""
        for each, level in self._before.items():
            each.setLevel(level)
        self._before.clear()


def level_name(level: int) -> str:
    """Kafka's name of the lowest level that still comes through."""
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
        raise ApiError(INVALID_REQUEST, f"{name}: the level of a logger can be set or deleted only")
    if name not in loggers:
        raise ApiError(
            INVALID_CONFIG, f"there is no logger {name!r}; allowed: {', '.join(loggers)}"
        )
    if what == SET and level not in LEVELS:
        raise ApiError(
            INVALID_CONFIG, f"{name} = {level!r} is no level; allowed: {', '.join(LEVELS)}"
        )
