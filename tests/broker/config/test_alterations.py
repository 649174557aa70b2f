"""What operations make of settings and of the levels of loggers, without a broker."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.broker.config._alterations import (
    APPEND,
    DELETE,
    LEVELS,
    SET,
    SUBTRACT,
    BrokerLoggers,
    Operation,
    applied,
    check_operations,
    level_name,
)
from trionet.errors import ApiError
from trionet.protocol.error_codes import INVALID_CONFIG, INVALID_REQUEST

LISTS = {"policies": ("delete",), "replicas": ()}

_TEXTS = st.text("abc", max_size=3)
_KEYS = st.sampled_from(["a", "b", "c", *LISTS])


def after(current: dict[str, str], *operations: Operation) -> dict[str, str]:
    check_operations(operations)
    return applied(current, operations, LISTS.get)


def test_keys_are_set_and_deleted_and_the_others_stay() -> None:
    before = {"a": "1", "b": "2"}

    assert {"b": "3", "c": "4"} == after(
        before, ("a", DELETE, None), ("b", SET, "3"), ("c", SET, "4")
    )
    assert {"a": "1", "b": "2"} == before


def test_what_is_not_set_can_be_deleted() -> None:
    assert {} == after({}, ("a", DELETE, None), ("b", DELETE, "a value does not matter"))


@pytest.mark.parametrize(
    ("before", "operation", "value", "expected"),
    [
        ("x", APPEND, "y", "x,y"),
        ("x", APPEND, "y,z", "x,y,z"),
        ("x,y", APPEND, "y,z", "x,y,z"),
        ("x", APPEND, " y ", "x,y"),
        ("x", APPEND, "y,y,x", "x,y"),
        ("", APPEND, "y", "y"),
        ("x,y,z", SUBTRACT, "y", "x,z"),
        ("x,y", SUBTRACT, "y,x", ""),
        ("x", SUBTRACT, "never there", "x"),
    ],
)
def test_a_list_gets_and_loses_items(
    before: str, operation: int, value: str, expected: str
) -> None:
    assert {"policies": expected} == after({"policies": before}, ("policies", operation, value))


def test_a_list_that_is_not_set_begins_with_kafkas_default() -> None:
    assert {"policies": "delete,compact"} == after({}, ("policies", APPEND, "compact"))
    assert {"policies": ""} == after({}, ("policies", SUBTRACT, "delete"))
    assert {"replicas": "0:1"} == after({}, ("replicas", APPEND, "0:1"))


@pytest.mark.parametrize("operation", [APPEND, SUBTRACT])
def test_only_lists_are_appended_to_and_subtracted_from(operation: int) -> None:
    with pytest.raises(ApiError, match="to key a because its type is not LIST") as raised:
        after({"a": "1"}, ("a", operation, "2"))

    assert INVALID_CONFIG == raised.value.error_code


@pytest.mark.parametrize(
    ("operations", "what"),
    [
        (
            [("a", SET, "1"), ("b", SET, "1"), ("a", DELETE, None)],
            "Error due to duplicate config keys",
        ),
        ([("a", SET, None)], "Null value not supported for : a"),
        ([("policies", APPEND, None)], "Null value not supported for : policies"),
        ([("policies", SUBTRACT, None)], "Null value not supported for : policies"),
        ([("a", 4, "1")], "a: unknown operation 4"),
        ([("a", -1, "1")], "a: unknown operation -1"),
    ],
)
def test_what_can_be_nothing_is_refused_as_a_whole(operations: list[Operation], what: str) -> None:
    with pytest.raises(ApiError, match=what) as raised:
        after({}, *operations)

    assert INVALID_REQUEST == raised.value.error_code


@given(before=st.dictionaries(_KEYS, _TEXTS), values=st.dictionaries(_KEYS, st.none() | _TEXTS))
def test_setting_and_deleting_is_what_a_dictionary_does(
    before: dict[str, str], values: dict[str, str | None]
) -> None:
    operations = [(key, DELETE if value is None else SET, value) for key, value in values.items()]

    expected = {key: value for key, value in {**before, **values}.items() if value is not None}
    assert expected == after(before, *operations)


@given(before=st.lists(_TEXTS, max_size=4), items=st.lists(_TEXTS, min_size=1, max_size=4))
def test_what_was_appended_is_there_and_what_was_subtracted_is_not(
    before: list[str], items: list[str]
) -> None:
    settings, value = {"replicas": ",".join(before)}, ",".join(items)

    appended = after(settings, ("replicas", APPEND, value))["replicas"]
    subtracted = after(settings, ("replicas", SUBTRACT, value))["replicas"]

    assert set(items) <= set(appended.split(","))
    assert set(filter(None, before)) <= set(appended.split(","))
    assert set(filter(None, before)) - set(items) == set(filter(None, subtracted.split(",")))


def test_a_list_may_have_very_many_items() -> None:
    """To look each up in a list would take longer than a test may."""
    count = 100_000
    before = {"replicas": ",".join(map(str, range(count)))}

    subtracted = after(before, ("replicas", SUBTRACT, ",".join(map(str, range(10, count)))))

    assert {"replicas": "0,1,2,3,4,5,6,7,8,9"} == subtracted


def test_what_is_appended_makes_no_list_that_no_response_can_describe() -> None:
    """Kafka: ConfigurationControlManager, which counts characters."""
    full = {"replicas": "x" * 32_765}
    assert 32_767 == len(after(full, ("replicas", APPEND, "y"))["replicas"])
    assert full == after(full, ("replicas", APPEND, "x" * 32_765))

    for items in ("yy", "\u00e9"):
        with pytest.raises(ApiError, match="maximum value size of 32767 bytes") as raised:
            after(full, ("replicas", APPEND, items))
        assert INVALID_CONFIG == raised.value.error_code


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
        (("no.such", SET, "INFO"), INVALID_CONFIG, "Logger no.such does not exist!"),
        (("no.such", DELETE, None), INVALID_CONFIG, "Logger no.such does not exist!"),
        (("root", SET, "INFO"), INVALID_CONFIG, "Logger root does not exist!"),
        (
            (NAME, SET, "LOUD"),
            INVALID_CONFIG,
            "to LOUD as it is not a supported log level. Valid log levels are DEBUG, ERROR",
        ),
        ((NAME, SET, "debug"), INVALID_CONFIG, "to debug as it is not a supported log level"),
        (
            (NAME, APPEND, "INFO"),
            INVALID_REQUEST,
            "operation is not allowed for the BROKER_LOGGER resource",
        ),
        (
            (NAME, SUBTRACT, "INFO"),
            INVALID_REQUEST,
            "operation is not allowed for the BROKER_LOGGER resource",
        ),
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
