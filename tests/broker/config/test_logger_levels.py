"""Levels of loggers by Kafka's names."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from trionet.broker.config._alterations import (
    APPEND,
    DELETE,
    LEVELS,
    SET,
    SUBTRACT,
    BrokerLoggers,
    level_name,
)
from trionet.errors import ApiError
from trionet.protocol.error_codes import INVALID_CONFIG, INVALID_REQUEST

NAME = "trionet.broker"


@pytest.fixture
def loggers() -> Iterator[BrokerLoggers]:
    loggers = BrokerLoggers()
    yield loggers
    loggers.restore()


def test_a_level_that_is_set_counts_for_the_logger_and_those_below_it(
    loggers: BrokerLoggers,
) -> None:
    logging.getLogger("trionet.broker.log")
    loggers.alter([("trionet.broker", SET, "DEBUG")])

    assert logging.getLogger(NAME).isEnabledFor(logging.DEBUG)
    assert "DEBUG" == loggers.levels()["trionet.broker"]
    assert "DEBUG" == loggers.levels()["trionet.broker.log"]


@pytest.mark.parametrize(("level", "number"), LEVELS.items())
def test_each_of_kafkas_levels_reads_back(loggers: BrokerLoggers, level: str, number: int) -> None:
    loggers.alter([(NAME, SET, level)])

    assert number == logging.getLogger(NAME).level
    assert level == loggers.levels()[NAME]


@pytest.mark.parametrize("value", [None, "", "INFO"])
def test_a_logger_without_a_level_has_that_of_the_one_above(
    loggers: BrokerLoggers, value: str | None
) -> None:
    loggers.alter([("trionet", SET, "ERROR"), (NAME, SET, "DEBUG")])
    loggers.alter([(NAME, DELETE, value)])

    assert "ERROR" == loggers.levels()[NAME]


def test_only_loggers_of_trionet_are_there(loggers: BrokerLoggers) -> None:
    logging.getLogger("somebody.else")
    logging.getLogger("trionettled")

    names = list(loggers.levels())

    assert "trionet" == names[0]
    assert all(name == "trionet" or name.startswith("trionet.") for name in names)


def test_levels_go_back_to_what_they_were(loggers: BrokerLoggers) -> None:
    logging.getLogger(NAME).setLevel(logging.NOTSET)
    loggers.alter([(NAME, SET, "DEBUG")])
    loggers.alter([(NAME, SET, "FATAL")])

    loggers.restore()

    assert logging.NOTSET == logging.getLogger(NAME).level


@pytest.mark.parametrize(
    ("operation", "code", "what"),
    [
        (("no.such", SET, "INFO"), INVALID_CONFIG, "logger 'no.such' does not exist"),
        (("no.such", DELETE, None), INVALID_CONFIG, "logger 'no.such' does not exist"),
        (("root", SET, "INFO"), INVALID_CONFIG, "logger 'root' does not exist"),
        ((NAME, SET, "LOUD"), INVALID_CONFIG, "'LOUD' is not a level; allowed: TRACE, DEBUG"),
        ((NAME, SET, "debug"), INVALID_CONFIG, "'debug' is not a level"),
        ((NAME, APPEND, "INFO"), INVALID_REQUEST, "can only be set or deleted"),
        ((NAME, SUBTRACT, "INFO"), INVALID_REQUEST, "can only be set or deleted"),
    ],
)
def test_a_bad_operation_changes_nothing_of_the_others_either(
    loggers: BrokerLoggers, operation: tuple[str, int, str | None], code: int, what: str
) -> None:
    before = loggers.levels()

    with pytest.raises(ApiError, match=what) as raised:
        loggers.alter([("trionet", SET, "TRACE"), operation])

    assert code == raised.value.error_code
    assert before == loggers.levels()


def test_a_check_changes_nothing(loggers: BrokerLoggers) -> None:
    before = loggers.levels()

    loggers.alter([(NAME, SET, "TRACE")], validate_only=True)

    assert before == loggers.levels()


@pytest.mark.parametrize(
    ("level", "name"), [(1, "TRACE"), (25, "WARN"), (50, "FATAL"), (99, "FATAL")]
)
def test_a_level_between_two_has_the_name_of_the_lowest_that_comes_through(
    level: int, name: str
) -> None:
    assert name == level_name(level)
