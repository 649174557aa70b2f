from __future__ import annotations

import pytest

from support.admin_errors import code_of
from trionet import Admin, ApiError
from trionet.client._topic_partition import TopicPartition
from trionet.client.admin import CommittedOffset, NewTopic

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


@pytest.fixture
async def topics(admin: Admin) -> None:
    (await admin.create_topics([NewTopic("a", 2), "b"])).checked()


async def test_offsets_are_committed_in_place_of_a_group(admin: Admin, topics: None) -> None:
    done = await admin.alter_group_offsets("g", {A0: 5, B0: CommittedOffset(7, "why", 0)})

    assert {A0: None, B0: None} == done
    found = (await admin.list_group_offsets(["g", "other"])).checked()
    assert {A0: CommittedOffset(5), B0: CommittedOffset(7, "why", 0)} == found["g"]
    assert {} == found["other"]


async def test_some_partitions_are_asked_for(admin: Admin, topics: None) -> None:
    await admin.alter_group_offsets("g", {A0: 5, B0: 6})

    found = (await admin.list_group_offsets({"g": [A1, A0]}, require_stable=True)).checked()

    assert {A1: None, A0: CommittedOffset(5)} == found["g"].checked()


async def test_error_of_one_partition_is_its_own(admin: Admin, topics: None) -> None:
    unknown = TopicPartition("unknown", 0)

    done = await admin.alter_group_offsets("g", {A0: 5, unknown: 1})

    assert "UNKNOWN_TOPIC_OR_PARTITION" == code_of(done[unknown])
    assert [unknown] == list(done.errors)


async def test_offsets_are_deleted(admin: Admin, topics: None) -> None:
    await admin.alter_group_offsets("g", {A0: 5, A1: 6})

    assert {A0: None} == await admin.delete_group_offsets("g", [A0])
    assert {A1: CommittedOffset(6)} == (await admin.list_group_offsets(["g"])).checked()["g"]


async def test_offsets_of_a_group_that_is_not_there_cannot_be_deleted(admin: Admin) -> None:
    with pytest.raises(ApiError, match="GROUP_ID_NOT_FOUND"):
        await admin.delete_group_offsets("g", [A0])


async def test_one_text_is_not_taken_for_the_groups_of_its_letters(admin: Admin) -> None:
    with pytest.raises(TypeError, match="not a single str"):
        await admin.list_group_offsets("group")
