"""What operations make of settings, without a broker."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.broker.config._alterations import (
    APPEND,
    DELETE,
    SET,
    SUBTRACT,
    Operation,
    applied,
    check_operations,
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
    with pytest.raises(ApiError, match="a is not a list") as raised:
        after({"a": "1"}, ("a", operation, "2"))

    assert INVALID_CONFIG == raised.value.error_code


@pytest.mark.parametrize(
    ("operations", "what"),
    [
        ([("a", SET, "1"), ("b", SET, "1"), ("a", DELETE, None)], "duplicate keys: a;"),
        ([("a", SET, None)], "a: the value is missing"),
        ([("policies", APPEND, None)], "policies: the value is missing"),
        ([("policies", SUBTRACT, None)], "policies: the value is missing"),
        ([("a", 4, "1")], "a: unknown operation 4"),
        ([("a", -1, "1")], "a: unknown operation -1"),
    ],
)
def test_what_can_be_nothing_is_refused_as_a_whole(operations: list[Operation], what: str) -> None:
    with pytest.raises(ApiError, match=what) as raised:
        after({}, *operations)

    assert INVALID_REQUEST == raised.value.error_code


@given(
    before=st.dictionaries(_KEYS, _TEXTS),
    values=st.dictionaries(_KEYS, st.none() | _TEXTS),
)
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
    count = 200_000
    before = {"replicas": ",".join(map(str, range(count)))}
    others = ",".join(map(str, range(count, 2 * count)))

    appended = after(before, ("replicas", APPEND, others))
    subtracted = after(appended, ("replicas", SUBTRACT, others))

    assert (2 * count, before) == (len(appended["replicas"].split(",")), subtracted)
