from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import pytest

import trionet
from trionet import Admin, Broker, TrionetError
from trionet.client._argument_checks import items, mapping
from trionet.client._topic_partition import TopicPartition

T0 = TopicPartition("t", 0)
WRONG = [5, "text", [5], {5: 5}, {T0: "x"}, object()]


def test_items_are_of_the_kinds_that_are_wanted() -> None:
    assert [1, "a"] == items(iter((1, "a")), int, str)
    for given, said in [
        ("ab", r"expected an iterable such as \['ab'\], not a single str"),
        (5, "expected an iterable of int or str, such as a list, not 5"),
        ([None], "expected int or str, not None"),
        ([True], "expected int or str, not True"),
    ]:
        wrong: Any = given
        with pytest.raises(TypeError, match=said):
            items(wrong, int, str)


def test_a_mapping_is_of_the_kinds_that_are_wanted() -> None:
    given: Mapping[str, int | None] = {"a": 1, "b": None}

    taken = mapping(given, str, int, type(None))

    assert given == taken
    assert given is not taken
    for other, said in [
        (["a"], "expected a mapping of str to int or None, not"),
        ({1: 1}, "expected str, not 1"),
        ({"a": "b"}, "expected int or None, not 'b'"),
        ({"a": True}, "expected int or None, not True"),
    ]:
        wrong: Any = other
        with pytest.raises(TypeError, match=said):
            mapping(wrong, str, int, type(None))


@pytest.mark.parametrize("number", ["0", True])
def test_number_of_a_partition_is_an_int(number: Any) -> None:
    given = TopicPartition("t", number)
    with pytest.raises(TypeError, match=r"the number in \('t', .*\) must be int"):
        items([given], TopicPartition)
    with pytest.raises(TypeError, match=r"the number in \('t', .*\) must be int"):
        mapping({given: 1}, TopicPartition, int)


def calls_with_wrong_arguments() -> list[tuple[str, dict[str, object]]]:
    """Each call with something wrong in place of each argument that it cannot do without."""
    right = {"offsets": {T0: 1}, "partitions": [T0], "id": 1, "directory_id": "A" * 22}
    found = []
    for name, function in inspect.getmembers(Admin, inspect.iscoroutinefunction):
        needed = [
            each.name
            for each in list(inspect.signature(function).parameters.values())[1:]
            if each.default is each.empty
        ]
        if not name.startswith("_") and name != "request":
            found += [
                (name, {**{key: right.get(key, "x") for key in needed}, wrong: value})
                for wrong in needed
                for value in WRONG
            ]
    return found


async def test_no_call_fails_within_by_what_it_is_given(broker: Broker) -> None:
    """A wrong type is reported in words, not by the first line that stumbles over it."""
    faults = []
    calls = calls_with_wrong_arguments()
    async with trionet.open_admin(
        broker.bootstrap_servers, default_api_timeout_ms=50, retries=0
    ) as admin:
        for name, arguments in calls:
            try:
                await getattr(admin, name)(**arguments)
            except TrionetError:
                pass
            except (AttributeError, LookupError, TypeError, ValueError) as error:
                clear = ("expected ", "must be ", "invalid ", " is a ", "is not a valid")
                if not isinstance(error, TypeError | ValueError) or not any(
                    words in str(error) for words in clear
                ):
                    faults.append((name, arguments, error))

    assert len(calls) > 200
    assert [] == faults
