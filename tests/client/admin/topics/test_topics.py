from __future__ import annotations

from typing import Any

import pytest

import trionet
from support.admin_errors import code_of
from trionet import Admin
from trionet.client.admin import NewPartitions, NewTopic


async def test_topics_are_made_and_their_errors_are_reported_one_by_one(admin: Admin) -> None:
    results = await admin.create_topics(
        [
            "plain",
            NewTopic("full", 3, 1, {"retention.ms": 5000, "preallocate": True}),
            NewTopic("placed", assignments={0: [1], 1: [1]}),
            NewTopic("two copies", 1, 1),
        ]
    )

    assert ["plain", "full", "placed", "two copies"] == list(results)
    assert ["two copies"] == list(results.errors)
    assert "INVALID_TOPIC_EXCEPTION" == code_of(results["two copies"])
    del results["two copies"]
    made = results.checked()
    assert [1, 3, 2] == [made[name].partitions for name in made]
    configs = made["full"].configs
    assert configs is not None
    assert ("5000", "true") == (configs["retention.ms"], configs["preallocate"])
    assert {"plain", "full", "placed"} == set(await admin.list_topics())


@pytest.mark.parametrize("number", ["partitions", "replication_factor"])
def test_replicas_are_placed_or_counted_but_not_both(number: str) -> None:
    given: dict[str, Any] = {"assignments": {0: [1]}, number: 5}

    with pytest.raises(ValueError, match=f"topic placed: {number}=5 and assignments cannot be"):
        NewTopic("placed", **given)


async def test_topic_is_not_made_twice_and_checked_raises_that(admin: Admin) -> None:
    await admin.create_topics(["orders"])
    again = await admin.create_topics(["orders"])

    assert "TOPIC_ALREADY_EXISTS" == code_of(again["orders"])
    with pytest.raises(trionet.ApiError, match="orders"):
        again.checked()


async def test_validating_makes_nothing(admin: Admin) -> None:
    results = await admin.create_topics(["orders"], validate_only=True)

    assert not results.errors
    assert {} == await admin.list_topics()


async def test_topics_are_deleted_by_name_and_by_id(admin: Admin) -> None:
    made = (await admin.create_topics(["a", "b", "c"])).checked()

    results = await admin.delete_topics(["a", "unknown"], ids=[made["b"].id])

    assert ["a", "unknown", made["b"].id] == list(results)
    assert "UNKNOWN_TOPIC_OR_PARTITION" == code_of(results["unknown"])
    assert ["unknown"] == list(results.errors)
    assert ["c"] == list(await admin.list_topics())


async def test_topics_are_enlarged(admin: Admin) -> None:
    await admin.create_topics(["a", "b", "c"])

    results = await admin.create_partitions({"a": 3, "b": NewPartitions(2, [[1]]), "c": 1})

    assert "INVALID_PARTITIONS" == code_of(results["c"])
    described = (await admin.describe_topics(["a", "b", "c"])).checked()
    assert [3, 2, 1] == [len(each.partitions) for each in described.values()]


async def test_text_of_a_name_is_not_several_names(admin: Admin) -> None:
    with pytest.raises(TypeError, match="orders"):
        await admin.delete_topics("orders")


@pytest.mark.parametrize("text", ["", "short", "=" * 22, "å" * 22])
async def test_id_that_is_none_is_refused(admin: Admin, text: str) -> None:
    with pytest.raises(ValueError, match="invalid id"):
        await admin.delete_topics(ids=[text])


async def test_topic_that_is_named_twice_is_refused(admin: Admin) -> None:
    with pytest.raises(ValueError, match="duplicate topic 'orders'"):
        await admin.create_topics(["orders", NewTopic("orders", 3)])


new: Any = NewTopic


@pytest.mark.parametrize(
    ("topics", "text"),
    [
        ({"orders": 3}, r"a list of names and NewTopics, such as \[NewTopic\('orders', 3\)\], not"),
        ([new("t", "3")], "the number of partitions of topic t must be int, not str: '3'"),
        ([new("t", True)], "the number of partitions of topic t must be int, not bool: True"),
        ([new("t", 3, 1.0)], "the replication factor of topic t must be int, not float"),
        ([new(3)], "the name of a topic must be str, not 3"),
    ],
)
async def test_what_is_no_new_topic_is_said(admin: Admin, topics: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        await admin.create_topics(topics)

    assert {} == await admin.list_topics()
