from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from support.calls import create_topic, delete_topic
from support.client import Client
from support.group_calls import commit, committed
from trionet import Broker
from trionet.broker.groups._committed_offsets import CommittedOffset
from trionet.protocol import error_codes
from trionet.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

Answers = dict[tuple[str | bytes, int], tuple[int, int, str | None, int]]
NONE: tuple[int, int, str, int] = (-1, -1, "", 0)


def told(topics: Sequence[Any], *, by_id: bool = False) -> Answers:
    """Offset, leader epoch, metadata and error code of each partition in a response."""
    return {
        (topic.topic_id if by_id else topic.name, each.partition_index): (
            each.committed_offset,
            each.committed_leader_epoch,
            each.metadata,
            each.error_code,
        )
        for topic in topics
        for each in topic.partitions
    }


async def ask_one(
    client: Client, wanted: Mapping[str, Sequence[int]] | None, version: int
) -> Answers:
    """Versions 1 to 7 ask for one group."""
    request = OffsetFetchRequest(
        group_id="g",
        topics=None
        if wanted is None
        else [
            OffsetFetchRequestTopic(name=name, partition_indexes=list(indexes))
            for name, indexes in wanted.items()
        ],
    )
    response = await client.call(request, version)
    assert 0 == response.error_code
    return told(response.topics)


async def ask_many(
    client: Client,
    wanted: Mapping[str, Mapping[str | bytes, Sequence[int]] | None],
    version: int,
    *,
    require_stable: bool = False,
) -> dict[str, Answers]:
    """Later ones for any number of them."""
    request = OffsetFetchRequest(
        require_stable=require_stable,
        groups=[
            OffsetFetchRequestGroup(
                group_id=group,
                topics=None
                if topics is None
                else [
                    OffsetFetchRequestTopics(
                        name=topic if isinstance(topic, str) else "",
                        topic_id=topic if isinstance(topic, bytes) else b"\0" * 16,
                        partition_indexes=list(indexes),
                    )
                    for topic, indexes in topics.items()
                ],
            )
            for group, topics in wanted.items()
        ],
    )
    response = await client.call(request, version)
    assert {0} == {group.error_code for group in response.groups}
    return {group.group_id: told(group.topics, by_id=version >= 10) for group in response.groups}


@pytest.mark.parametrize("version", range(8))
async def test_what_was_committed_is_reported(client: Client, version: int) -> None:
    await create_topic(client, "t", partitions=3)
    await commit(client, {"t": {0: 5, 1: 0}}, metadata="mëta", leader_epoch=3)

    answers = await ask_one(client, {"t": [1, 0, 2, 9], "u": [0]}, version)

    epoch = 3 if version >= 5 else -1
    assert {
        ("t", 1): (0, epoch, "mëta", 0),
        ("t", 0): (5, epoch, "mëta", 0),
        ("t", 2): NONE,
        ("t", 9): NONE,
        ("u", 0): NONE,
    } == answers


@pytest.mark.parametrize("version", range(2, 8))
async def test_so_is_everything(client: Client, version: int) -> None:
    await create_topic(client, "t", partitions=3)
    await create_topic(client, "u")
    await commit(client, {"t": {2: 7, 0: 5}, "u": {0: 6}})

    answers = await ask_one(client, None, version)

    assert [("t", 0, 5), ("t", 2, 7), ("u", 0, 6)] == [
        (*partition, offset) for partition, (offset, *_) in answers.items()
    ]


@pytest.mark.parametrize("version", range(8))
async def test_of_a_group_that_is_not_there_nothing_is(client: Client, version: int) -> None:
    assert {("t", 0): NONE} == await ask_one(client, {"t": [0]}, version)
    if version >= 2:
        assert {} == await ask_one(client, None, version)


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("require_stable", [False, True])
async def test_of_many_groups_at_once(client: Client, version: int, require_stable: bool) -> None:
    await create_topic(client, "t", partitions=2)
    await commit(client, {"t": {0: 5, 1: 6}}, metadata="m", leader_epoch=3)
    await commit(client, {"t": {0: 7}}, group="h")

    answers = await ask_many(
        client,
        {"g": {"t": [1]}, "h": None, "": {"t": [0]}, "nobody's": None},
        version,
        require_stable=require_stable,
    )

    assert {
        "g": {("t", 1): (6, 3, "m", 0)},
        "h": {("t", 0): (7, -1, "", 0)},
        "": {("t", 0): NONE},
        "nobody's": {},
    } == answers


async def test_from_version_10_on_by_the_ids_of_topics(client: Client) -> None:
    t = (await create_topic(client, "t", partitions=2)).topic_id
    u = (await create_topic(client, "u")).topic_id
    nobody = b"\1" * 16
    await commit(client, {"t": {0: 5}, "u": {0: 6}})

    answers = await ask_many(client, {"g": {t: [0, 1], nobody: [0]}, "h": None}, 10)
    everything = await ask_many(client, {"g": None}, 10)

    assert {
        (t, 0): (5, -1, "", 0),
        (t, 1): NONE,
        (nobody, 0): (-1, -1, "", error_codes.UNKNOWN_TOPIC_ID),
    } == answers["g"]
    assert {} == answers["h"]
    assert {(t, 0): 5, (u, 0): 6} == {
        partition: offset for partition, (offset, *_) in everything["g"].items()
    }


async def test_a_topic_that_has_no_id_any_more_is_left_out(broker: Broker, client: Client) -> None:
    """Its offsets should have gone with it, but could not."""
    u = (await create_topic(client, "u")).topic_id
    await commit(client, {"u": {0: 6}})
    broker._cluster.group_store.offsets.put("g", {("gone", 0): CommittedOffset(5, -1, "", 0)})

    answers = await ask_many(client, {"g": None}, 10)

    assert {(u, 0): (6, -1, "", 0)} == answers["g"]
    assert {("gone", 0): 5, ("u", 0): 6} == await committed(client)


async def test_a_topic_that_was_created_anew_has_none_of_the_offsets_before(
    client: Client,
) -> None:
    await create_topic(client, "t")
    await create_topic(client, "u")
    await commit(client, {"t": {0: 5}, "u": {0: 6}})

    await delete_topic(client, "t")
    await create_topic(client, "t")

    assert {("t", 0): -1, ("u", 0): 6} == await committed(client, {"t": [0], "u": [0]})
    assert {("u", 0): 6} == await committed(client)


async def test_all_of_a_group_is_reported_once(client: Client) -> None:
    """95 bytes could ask for all that a large group has committed twenty times: for 1.8 GB."""
    everything = OffsetFetchRequestGroup(group_id="g", topics=None)
    part = OffsetFetchRequestGroup(group_id="g", topics=[])
    request = OffsetFetchRequest(groups=[everything, part, everything, everything])

    groups = (await client.call(request, 9)).groups

    assert ["g", "g"] == [group.group_id for group in groups]
