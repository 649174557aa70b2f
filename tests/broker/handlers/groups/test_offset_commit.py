from __future__ import annotations

import pytest

from support.calls import create_topic
from support.client import Client, connect
from support.group_calls import commit, commit_request, committed, join_alone
from trionet import Broker, open_broker
from trionet.protocol import error_codes
from trionet.protocol.messages.list_groups import ListGroupsRequest
from trionet.protocol.messages.offset_commit import OffsetCommitRequest

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
    async with (
        open_broker(offset_metadata_max_bytes=3) as broker,
        connect(broker.bootstrap_servers) as client,
    ):
        await create_topic(client, "t")
        too_large = error_codes.OFFSET_METADATA_TOO_LARGE

        assert {("t", 0): 0} == await commit(client, {"t": {0: 5}}, metadata="abc")
        assert {("t", 0): too_large} == await commit(client, {"t": {0: 6}}, metadata="abcd")


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
