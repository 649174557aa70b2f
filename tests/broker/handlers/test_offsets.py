"""Offsets of groups are committed, fetched and deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

import pytest

from support.brokers import broker_client, settled
from support.calls import create_topic, delete_topic
from support.client import Client, connect
from support.group_calls import commit, commit_request, committed, join_alone, join_request
from trionet import Broker
from trionet.broker.groups._committed_offsets import CommittedOffset
from trionet.broker.groups._group import GroupState
from trionet.broker.groups._members import Caller
from trionet.broker.handlers._offsets import transaction_error
from trionet.protocol import error_codes
from trionet.protocol.messages.list_groups import ListGroupsRequest
from trionet.protocol.messages.offset_commit import OffsetCommitRequest
from trionet.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from trionet.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

UNKNOWN = error_codes.UNKNOWN_TOPIC_OR_PARTITION


async def groups(client: Client) -> list[str]:
    return [group.group_id for group in (await client.call(ListGroupsRequest(), 5)).groups]


@pytest.mark.parametrize("version", range(1, 10))
async def test_a_member_commits_by_the_names_of_topics(client: Client, version: int) -> None:
    await create_topic(client, "t", partitions=2)
    await create_topic(client, "u")
    joined = await join_alone(client)

    codes = await commit(client, {"t": {0: 5, 1: 6}, "u": {0: 0}}, joined=joined, version=version)

    assert {("t", 0): 0, ("t", 1): 0, ("u", 0): 0} == codes
    assert {("t", 0): 5, ("t", 1): 6, ("u", 0): 0} == await committed(client)


async def test_from_version_10_on_by_their_ids(client: Client) -> None:
    id = (await create_topic(client, "t", partitions=2)).topic_id
    joined = await join_alone(client)
    nobody = b"\1" * 16

    codes = await commit(client, {id: {0: 5, 2: 6}, nobody: {0: 7, 1: 8}}, joined=joined)

    assert {
        (id, 0): 0,
        (id, 2): UNKNOWN,
        (nobody, 0): error_codes.UNKNOWN_TOPIC_ID,
        (nobody, 1): error_codes.UNKNOWN_TOPIC_ID,
    } == codes
    assert {("t", 0): 5} == await committed(client)


@pytest.mark.parametrize("version", range(10))
async def test_who_is_in_no_group_commits_all_the_same(client: Client, version: int) -> None:
    await create_topic(client, "t")

    assert {("t", 0): 0} == await commit(client, {"t": {0: 5}}, version=version)
    assert {("t", 0): 5} == await committed(client)
    assert ["g"] == await groups(client)


async def test_that_may_even_have_no_name(client: Client) -> None:
    await create_topic(client, "t")

    assert {("t", 0): 0} == await commit(client, {"t": {0: 5}}, group="")
    assert {("t", 0): 5} == await committed(client, group="")


@pytest.mark.parametrize("version", range(10))
async def test_a_partition_must_be_there(client: Client, version: int) -> None:
    await create_topic(client, "t")

    codes = await commit(client, {"t": {0: 5, 1: 6, -1: 7}, "u": {0: 8}}, version=version)

    assert {("t", 0): 0, ("t", 1): UNKNOWN, ("t", -1): UNKNOWN, ("u", 0): UNKNOWN} == codes
    assert {("t", 0): 5} == await committed(client)


async def test_who_commits_nothing_that_is_there_makes_no_group(client: Client) -> None:
    assert {("t", 0): UNKNOWN} == await commit(client, {"t": {0: 5}})
    assert {} == await commit(client, {})
    assert [] == await groups(client)


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (8, error_codes.ILLEGAL_GENERATION),
        (9, error_codes.GROUP_ID_NOT_FOUND),
        (10, error_codes.GROUP_ID_NOT_FOUND),
    ],
)
async def test_the_group_of_a_member_must_be_there(
    client: Client, version: int, expected: int
) -> None:
    topic: str | bytes = (await create_topic(client, "t")).topic_id if version >= 10 else "t"
    if version < 10:
        await create_topic(client, "t")
    joined = await join_alone(client)

    codes = await commit(client, {topic: {0: 5}}, group="other", joined=joined, version=version)

    assert {(topic, 0): expected} == codes
    assert ["g"] == await groups(client)


@pytest.mark.parametrize("version", range(1, 10))
async def test_what_is_wrong_with_the_member_is_reported_for_every_partition(
    client: Client, version: int
) -> None:
    """But of those that are not there."""
    await create_topic(client, "t", partitions=2)
    joined = await join_alone(client)
    joined.generation_id += 1

    codes = await commit(client, {"t": {0: 5, 1: 6, 2: 7}}, joined=joined, version=version)

    illegal = error_codes.ILLEGAL_GENERATION
    assert {("t", 0): illegal, ("t", 1): illegal, ("t", 2): UNKNOWN} == codes
    assert {} == await committed(client)


@pytest.mark.parametrize("version", range(7, 10))
async def test_a_static_member_that_was_replaced_is_fenced(client: Client, version: int) -> None:
    await create_topic(client, "t")
    first = await join_alone(client, instance="i")
    first.member_id = "another"

    codes = await commit(client, {"t": {0: 5}}, joined=first, instance="i", version=version)

    assert {("t", 0): error_codes.FENCED_INSTANCE_ID} == codes


async def test_metadata_has_a_limit(client: Client) -> None:
    await create_topic(client, "t", partitions=2)
    request = commit_request({"t": {0: 5, 1: 6}}, metadata="x" * 4096)
    request.topics[0].partitions[1].committed_metadata = "x" * 4097

    response = await client.call(request, 9)

    assert [0, error_codes.OFFSET_METADATA_TOO_LARGE] == [
        each.error_code for each in response.topics[0].partitions
    ]
    assert {("t", 0): 5} == await committed(client)


async def test_the_limit_is_a_setting() -> None:
    async with broker_client(offset_metadata_max_bytes=3) as client:
        await create_topic(client, "t")
        too_large = error_codes.OFFSET_METADATA_TOO_LARGE

        assert {("t", 0): 0} == await commit(client, {"t": {0: 5}}, metadata="abc")
        assert {("t", 0): too_large} == await commit(client, {"t": {0: 6}}, metadata="abcd")


@pytest.mark.parametrize(
    ("metadata", "is_too_large"),
    [
        ("📎" * 2, False),
        ("📎" * 2 + "x", True),
        ("📎" * 3, True),
        ("ää" * 2, False),
        ("äääää", True),
    ],
)
async def test_the_limit_counts_utf_16_units(metadata: str, is_too_large: bool) -> None:
    """As Kafka does, which counts Java's characters."""
    async with broker_client(offset_metadata_max_bytes=4) as client:
        await create_topic(client, "t")

        [code] = (await commit(client, {"t": {0: 5}}, metadata=metadata)).values()

    assert (error_codes.OFFSET_METADATA_TOO_LARGE if is_too_large else 0) == code


@pytest.mark.parametrize("version", range(10))
async def test_null_metadata_is_none(client: Client, version: int) -> None:
    await create_topic(client, "t")

    assert {("t", 0): 0} == await commit(client, {"t": {0: 5}}, metadata=None, version=version)


@pytest.mark.parametrize(("time", "expected"), [(-1, None), (1000, 1000)])
async def test_older_ones_say_when_it_was_committed(
    broker: Broker, client: Client, time: int, expected: int | None
) -> None:
    await create_topic(client, "t")
    request = commit_request({"t": {0: 5}})
    request.topics[0].partitions[0].commit_timestamp = time
    now_ms = broker._state.now_ms()

    await client.call(request, 1)

    committed_at_ms = broker._state.groups.offsets.of("g")["t", 0].committed_at_ms
    assert (expected == committed_at_ms) if expected else (now_ms <= committed_at_ms)


@pytest.mark.parametrize("version", range(2, 5))
async def test_old_clients_say_how_long_an_offset_is_kept(
    broker: Broker, client: Client, version: int
) -> None:
    await create_topic(client, "t", partitions=2)
    await commit(client, {"t": {0: 5}}, retention_ms=1000, version=version)
    await commit(client, {"t": {1: 6}}, retention_ms=-1, version=version)

    offsets = broker._state.groups.offsets.of("g")

    asked = offsets["t", 0]
    assert asked.committed_at_ms + 1000 == asked.expires_at_ms
    assert offsets["t", 1].expires_at_ms is None


async def test_an_error_of_the_database_is_one_to_try_again_on(
    broker: Broker, client: Client
) -> None:
    await create_topic(client, "t")
    await broker._state.database.transaction(
        lambda connection: connection.execute("DROP TABLE committed_offset")
    )

    assert {("t", 0): error_codes.COORDINATOR_NOT_AVAILABLE} == await commit(client, {"t": {0: 5}})


async def test_a_request_without_topics_gets_a_response_without(client: Client) -> None:
    response = await client.call(OffsetCommitRequest(group_id="g"), 9)

    assert [] == response.topics


@pytest.mark.parametrize("version", [2, 3, 4])
async def test_a_retention_that_never_ends_is_one_and_disturbs_nothing(
    client: Client, version: int
) -> None:
    await create_topic(client, "t")
    request = commit_request({"t": {0: 5}})
    request.retention_time_ms = 2**63 - 1

    response = await client.call(request, version)

    assert [0] == [each.error_code for each in response.topics[0].partitions]
    assert {("t", 0): 5} == await committed(client)
    assert {("t", 0): 0} == await commit(client, {"t": {0: 6}}, group="of another", version=9)


Answers = dict[tuple[str | bytes, int], tuple[int, int, str | None, int]]
NONE: tuple[int, int, str, int] = (-1, -1, "", 0)


def told(topics: Sequence[Any], *, by_id: bool = False) -> Answers:
    """Offset, leader epoch, metadata and error code of each partition in a response."""
    return {
        (topic.topic_id if by_id else topic.name, each.partition_index): attrgetter(
            "committed_offset", "committed_leader_epoch", "metadata", "error_code"
        )(each)
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


async def test_unknown_ids_are_the_last_of_a_response_as_in_that_of_kafka(client: Client) -> None:
    t, u = [(await create_topic(client, name)).topic_id for name in "tu"]
    one, other = b"\1" * 16, b"\2" * 16

    answers = await ask_many(client, {"g": {one: [0, 1], u: [0], other: [0], t: [0]}}, 10)

    assert [(u, 0), (t, 0), (one, 0), (one, 1), (other, 0)] == list(answers["g"])


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


# Offsets that wait for the end of a transaction.

PRODUCER = 7


async def pend(broker: Broker, offsets: Mapping[tuple[str, int], int], group: str = "g") -> None:
    """Commit offsets in a transaction that stays open."""
    pending = {each: CommittedOffset(offset, -1, "", 0) for each, offset in offsets.items()}
    codes: list[int] = []
    broker._cluster.nodes[1].groups.commit_in_transaction(
        group, Caller("", None, -1), PRODUCER, pending, codes.append
    )
    await broker._cluster.writes.flush()
    assert [0] == codes


async def end(broker: Broker, *, is_commit: bool) -> None:
    store = broker._cluster.group_store
    broker._cluster.writes.write(
        store.end_pending(PRODUCER, is_commit), lambda _: store.pending_ended(PRODUCER, is_commit)
    )
    await broker._cluster.writes.flush()


UNSTABLE: tuple[int, int, str, int] = (-1, -1, "", error_codes.UNSTABLE_OFFSET_COMMIT)


@pytest.mark.parametrize("version", [8, 9])
async def test_a_pending_offset_makes_its_partition_unstable(
    broker: Broker, client: Client, version: int
) -> None:
    """KIP-447: for those that ask for it; all others get the offset before the transaction."""
    await create_topic(client, "t", partitions=3)
    await commit(client, {"t": {0: 1, 1: 2}})
    await pend(broker, {("t", 0): 5, ("t", 2): 6})
    wanted: dict[str, Mapping[str | bytes, Sequence[int]] | None] = {
        "g": {"t": [0, 1, 2]},
        "other": {"t": [0]},
    }

    stable = await ask_many(client, wanted, version, require_stable=True)
    any_one = await ask_many(client, wanted, version)
    await end(broker, is_commit=True)
    ended = await ask_many(client, wanted, version, require_stable=True)

    plain = (2, -1, "", 0)
    assert {("t", 0): UNSTABLE, ("t", 1): plain, ("t", 2): UNSTABLE} == stable["g"]
    assert {("t", 0): (1, -1, "", 0), ("t", 1): plain, ("t", 2): NONE} == any_one["g"]
    assert {("t", 0): (5, -1, "", 0), ("t", 1): plain, ("t", 2): (6, -1, "", 0)} == ended["g"]
    assert [{("t", 0): NONE}] * 3 == [each["other"] for each in (stable, any_one, ended)]


async def test_in_version_7_too(broker: Broker, client: Client) -> None:
    await create_topic(client, "t", partitions=2)
    await commit(client, {"t": {0: 1, 1: 2}})
    await pend(broker, {("t", 0): 5})
    topics = [OffsetFetchRequestTopic(name="t", partition_indexes=[0, 1])]

    request = OffsetFetchRequest(group_id="g", topics=topics, require_stable=True)
    response = await client.call(request, 7)

    assert 0 == response.error_code
    assert {("t", 0): UNSTABLE, ("t", 1): (2, -1, "", 0)} == told(response.topics)


@pytest.mark.parametrize("is_by_id", [False, True])
async def test_all_topics_are_those_with_a_committed_offset(
    broker: Broker, client: Client, is_by_id: bool
) -> None:
    """A partition whose only offset is pending is left out, as in Kafka."""
    id = (await create_topic(client, "t", partitions=3)).topic_id
    await commit(client, {"t": {0: 1, 1: 2}})
    await pend(broker, {("t", 0): 5, ("t", 2): 6})

    version = 10 if is_by_id else 9
    answers = await ask_many(client, {"g": None}, version, require_stable=True)

    topic = id if is_by_id else "t"
    assert {(topic, 0): UNSTABLE, (topic, 1): (2, -1, "", 0)} == answers["g"]


async def test_deleted_offsets_do_not_come_back_with_their_transaction(
    broker: Broker, client: Client
) -> None:
    await create_topic(client, "t", partitions=2)
    await pend(broker, {("t", 0): 5, ("t", 1): 6})

    assert (0, {("t", 0): 0}) == await delete(client, ("t", 0))
    await end(broker, is_commit=True)

    assert {("t", 1): 6} == await committed(client)


async def test_nor_do_those_of_a_deleted_topic(broker: Broker, client: Client) -> None:
    await create_topic(client, "t", partitions=2)
    await create_topic(client, "u")
    await pend(broker, {("t", 0): 5, ("u", 0): 6})
    await delete_topic(client, "t")
    await end(broker, is_commit=True)
    await create_topic(client, "t", partitions=2)

    assert {("u", 0): 6} == await committed(client)


@pytest.mark.parametrize(
    ("error_code", "version", "expected"),
    [
        # Of before KIP-890: clients do not know the error.
        (error_codes.TRANSACTION_ABORTABLE, 3, error_codes.INVALID_TXN_STATE),
        (error_codes.TRANSACTION_ABORTABLE, 4, error_codes.TRANSACTION_ABORTABLE),
        (error_codes.PRODUCER_FENCED, 5, error_codes.INVALID_PRODUCER_EPOCH),
        (error_codes.CONCURRENT_TRANSACTIONS, 5, error_codes.CONCURRENT_TRANSACTIONS),
        (error_codes.INVALID_PRODUCER_ID_MAPPING, 0, error_codes.INVALID_PRODUCER_ID_MAPPING),
    ],
)
def test_an_error_of_the_transaction_is_one_that_clients_know(
    error_code: int, version: int, expected: int
) -> None:
    assert expected == transaction_error(error_code, version)


# The metadata of a consumer that reads topic `t`, in version 1 of its protocol.
READS_T = b"\0\1\0\0\0\1\0\1t\0\0\0\0\0\0\0\0"
SUBSCRIBED = error_codes.GROUP_SUBSCRIBED_TO_TOPIC

Codes = dict[tuple[str, int], int]


async def delete(
    client: Client, *partitions: tuple[str, int], group: str = "g"
) -> tuple[int, Codes]:
    """The error code of the call, and that of each partition."""
    request = OffsetDeleteRequest(
        group_id=group,
        topics=[
            OffsetDeleteRequestTopic(
                name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=index)]
            )
            for topic, index in partitions
        ],
    )
    response = await client.call(request, 0)
    return response.error_code, {
        (topic.name, each.partition_index): each.error_code
        for topic in response.topics
        for each in topic.partitions
    }


@pytest.fixture
async def topics(client: Client) -> None:
    await create_topic(client, "t", partitions=2)
    await create_topic(client, "u")


async def test_offsets_of_a_group_without_members_go(client: Client, topics: None) -> None:
    await commit(client, {"t": {0: 5, 1: 6}, "u": {0: 7}})

    assert (0, {("t", 1): 0, ("u", 0): 0}) == await delete(client, ("t", 1), ("u", 0))
    assert {("t", 0): 5} == await committed(client)


async def test_what_was_never_committed_may_go_too(client: Client, topics: None) -> None:
    await commit(client, {"t": {0: 5}})

    assert (0, {("u", 0): 0}) == await delete(client, ("u", 0))


async def test_a_partition_of_a_deleted_offset_must_be_there(client: Client, topics: None) -> None:
    await commit(client, {"t": {0: 5}})

    assert (0, {("t", 0): 0, ("t", 7): UNKNOWN, ("v", 0): UNKNOWN}) == await delete(
        client, ("t", 0), ("t", 7), ("v", 0)
    )


async def test_what_members_read_stays(client: Client, topics: None) -> None:
    joined = await join_alone(client, protocols={"range": READS_T})
    await commit(client, {"t": {0: 5}, "u": {0: 6}}, joined=joined)

    assert (0, {("t", 0): SUBSCRIBED, ("u", 0): 0, ("v", 0): UNKNOWN}) == await delete(
        client, ("t", 0), ("u", 0), ("v", 0)
    )
    assert {("t", 0): 5} == await committed(client)


async def test_everything_stays_while_it_is_not_known_what_members_read(
    client: Client, topics: None
) -> None:
    joined = await join_alone(client, protocols={"range": b"?"})
    await commit(client, {"t": {0: 5}}, joined=joined)

    assert (0, {("t", 0): SUBSCRIBED, ("u", 0): SUBSCRIBED}) == await delete(
        client, ("t", 0), ("u", 0)
    )


async def test_it_is_known_during_a_rebalance(broker: Broker, client: Client, topics: None) -> None:
    joined = await join_alone(client, protocols={"range": READS_T})
    await commit(client, {"t": {0: 5}, "u": {0: 6}}, joined=joined)
    async with connect(broker.bootstrap_servers) as other:
        await other.send(join_request(protocols={"range": READS_T}), 3)
        await settled(broker)

        deleted = await delete(client, ("t", 0), ("u", 0))

    assert (0, {("t", 0): SUBSCRIBED, ("u", 0): 0}) == deleted


async def test_members_that_are_no_consumers_keep_all(client: Client, topics: None) -> None:
    request = join_request(protocol_type="connect")
    await client.call(request, 3)

    assert (error_codes.NON_EMPTY_GROUP, {}) == await delete(client, ("t", 0))


@pytest.mark.parametrize(
    ("group", "expected"),
    [("", error_codes.INVALID_GROUP_ID), ("other", error_codes.GROUP_ID_NOT_FOUND)],
)
async def test_a_group_must_be_there(
    client: Client, topics: None, group: str, expected: int
) -> None:
    await commit(client, {"t": {0: 5}}, group="")

    assert (expected, {}) == await delete(client, ("t", 0), group=group)


async def test_a_group_that_is_being_deleted_is_not_there(
    broker: Broker, client: Client, topics: None
) -> None:
    await commit(client, {"t": {0: 5}})
    broker._state.groups.groups["g"].state = GroupState.DEAD

    assert (error_codes.GROUP_ID_NOT_FOUND, {}) == await delete(client, ("t", 0))


async def test_deleting_may_be_tried_again_after_an_error_of_the_database(
    broker: Broker, client: Client, topics: None
) -> None:
    await commit(client, {"t": {0: 5}})
    await broker._state.database.transaction(
        lambda connection: connection.execute("DROP TABLE committed_offset")
    )

    assert (error_codes.COORDINATOR_NOT_AVAILABLE, {}) == await delete(client, ("t", 0))
