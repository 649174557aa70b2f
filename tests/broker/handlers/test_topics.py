"""Topics and their partitions are created and deleted."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from support.brokers import broker_client
from support.calls import append, batch, create_topic, describe_topics, fetch, produce, values_of
from support.client import Client, connect
from support.group_calls import commit, committed
from support.nodes import connect_to
from trionet import Broker, open_broker
from trionet.protocol import error_codes
from trionet.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from trionet.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from trionet.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicState,
)

STATIC_BROKER_CONFIG, DEFAULT_CONFIG, DYNAMIC_TOPIC_CONFIG = 4, 5, 1


def wanted(
    name: str,
    partitions: int = 1,
    replication_factor: int = 1,
    configs: dict[str, str | None] | None = None,
    assignments: dict[int, list[int]] | None = None,
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        configs=[
            CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()
        ],
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
            for index, brokers in (assignments or {}).items()
        ],
    )


async def create(
    client: Client, *topics: CreatableTopic, version: int = 7, **fields: Any
) -> list[CreatableTopicResult]:
    request = CreateTopicsRequest(topics=list(topics), **fields)
    results: list[CreatableTopicResult] = (await client.call(request, version)).topics
    return results


@pytest.mark.parametrize("version", range(8))
async def test_a_topic_is_created_and_can_be_written_at_once(client: Client, version: int) -> None:
    [result] = await create(client, wanted("t", 3), version=version)

    answer = await produce(client, "t", batch(b"a"), partition=2)
    [topic] = await describe_topics(client, "t")
    assert ("t", 0, None) == (result.name, result.error_code, result.error_message or None)
    assert 3 == len(topic.partitions)
    assert (topic.topic_id if version >= 7 else bytes(16)) == result.topic_id
    assert ((3, 1) if version >= 5 else (-1, -1)) == (
        result.num_partitions,
        result.replication_factor,
    )
    assert 0 == answer.error_code


async def test_the_settings_of_the_new_topic_are_in_the_response(client: Client) -> None:
    [result] = await create(client, wanted("t", configs={"retention.ms": "1000"}), version=5)

    assert result.configs is not None
    settings = {entry.name: (entry.value, entry.config_source) for entry in result.configs}
    assert ("1000", DYNAMIC_TOPIC_CONFIG) == settings["retention.ms"]
    assert ("1073741824", DEFAULT_CONFIG) == settings["segment.bytes"]


async def test_minus_1_stands_for_the_brokers_defaults() -> None:
    async with broker_client(num_partitions=4) as client:
        [result] = await create(client, wanted("t", -1, -1))

        assert (0, 4, 1) == (result.error_code, result.num_partitions, result.replication_factor)


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        (wanted(""), error_codes.INVALID_TOPIC_EXCEPTION),
        (wanted("a b"), error_codes.INVALID_TOPIC_EXCEPTION),
        (wanted(".."), error_codes.INVALID_TOPIC_EXCEPTION),
        (wanted("x" * 250), error_codes.INVALID_TOPIC_EXCEPTION),
        (wanted("__consumer_offsets"), error_codes.INVALID_TOPIC_EXCEPTION),
        (wanted("there"), error_codes.TOPIC_ALREADY_EXISTS),
        (wanted("a_b"), error_codes.INVALID_TOPIC_EXCEPTION),
        (wanted("t", 0), error_codes.INVALID_PARTITIONS),
        (wanted("t", -2), error_codes.INVALID_PARTITIONS),
        (wanted("t", 10_001), error_codes.POLICY_VIOLATION),
        (wanted("t", 1, 0), error_codes.INVALID_REPLICATION_FACTOR),
        (wanted("t", 1, 2), error_codes.INVALID_REPLICATION_FACTOR),
        (wanted("t", configs={"no.such.key": "1"}), error_codes.INVALID_CONFIG),
        (wanted("t", configs={"retention.ms": "soon"}), error_codes.INVALID_CONFIG),
        (wanted("t", configs={"retention.ms": None}), error_codes.INVALID_CONFIG),
        (wanted("t", -1, -1, assignments={0: [2]}), error_codes.INVALID_REPLICA_ASSIGNMENT),
        (wanted("t", -1, -1, assignments={1: [1]}), error_codes.INVALID_REPLICA_ASSIGNMENT),
        (wanted("t", -1, -1, assignments={0: [1, 1]}), error_codes.INVALID_REPLICA_ASSIGNMENT),
        (wanted("t", 1, -1, assignments={0: [1]}), error_codes.INVALID_REQUEST),
    ],
)
@pytest.mark.parametrize("validate_only", [False, True])
async def test_what_cannot_be_is_refused_with_a_reason(
    client: Client, topic: CreatableTopic, code: int, validate_only: bool
) -> None:
    await create_topic(client, "there")
    await create_topic(client, "a.b")

    [result] = await create(client, topic, validate_only=validate_only)

    assert (code, bytes(16), None) == (result.error_code, result.topic_id, result.configs or None)
    assert (-1, -1) == (result.num_partitions, result.replication_factor)
    assert result.error_message
    assert ["there", "a.b"] == [each.name for each in await describe_topics(client)]


async def test_partitions_may_be_assigned_to_the_one_broker(client: Client) -> None:
    [result] = await create(client, wanted("t", -1, -1, assignments={1: [1], 0: [1]}))

    assert (0, 2) == (result.error_code, result.num_partitions)


async def test_a_topic_that_is_only_validated_is_not_made(client: Client) -> None:
    [result] = await create(client, wanted("t", 3), validate_only=True)

    assert (0, 3, bytes(16)) == (result.error_code, result.num_partitions, result.topic_id)
    assert result.configs
    assert [] == await describe_topics(client)


async def test_each_topic_has_a_response_of_its_own(client: Client) -> None:
    results = await create(client, wanted("a"), wanted("b c"), wanted("d"))

    assert [("a", 0), ("b c", error_codes.INVALID_TOPIC_EXCEPTION), ("d", 0)] == [
        (result.name, result.error_code) for result in results
    ]
    assert ["a", "d"] == [topic.name for topic in await describe_topics(client)]


async def test_a_topic_that_is_in_the_request_twice_is_in_the_response_once_and_not_made(
    client: Client,
) -> None:
    results = await create(client, wanted("a", 1), wanted("b"), wanted("a", 2))

    assert [("a", error_codes.INVALID_REQUEST), ("b", 0)] == [
        (result.name, result.error_code) for result in results
    ]
    assert ["b"] == [topic.name for topic in await describe_topics(client)]


async def test_what_a_topic_asks_for_and_does_not_get_is_logged(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    [result] = await create(client, wanted("t", configs={"preallocate": "true"}))

    assert 0 == result.error_code
    assert "topic t: not applied by this version: preallocate=true" in caplog.text


async def test_a_topic_whose_folder_cannot_be_made_does_not_stay(tmp_path: Path) -> None:
    async with broker_client(log_dirs=str(tmp_path)) as client:
        in_the_way = tmp_path / "t-1"
        in_the_way.write_text("not a folder")

        [refused] = await create(client, wanted("t", 2))
        known = await describe_topics(client)
        in_the_way.unlink()
        [created] = await create(client, wanted("t", 2))
        answers = [await produce(client, "t", batch(b"a"), partition=index) for index in (0, 1)]

        assert (error_codes.KAFKA_STORAGE_ERROR, bytes(16)) == (
            refused.error_code,
            refused.topic_id,
        )
        assert [] == known
        assert 0 == created.error_code
        assert [0, 0] == [answer.error_code for answer in answers]


def to(
    name: str, count: int, assignments: Sequence[Sequence[int]] | None = None
) -> CreatePartitionsTopic:
    """A topic that is to have so many partitions."""
    return CreatePartitionsTopic(
        name=name,
        count=count,
        assignments=None
        if assignments is None
        else [CreatePartitionsAssignment(broker_ids=list(brokers)) for brokers in assignments],
    )


async def grow(
    client: Client, *topics: CreatePartitionsTopic, validate_only: bool = False, version: int = 3
) -> list[CreatePartitionsTopicResult]:
    request = CreatePartitionsRequest(
        topics=list(topics), timeout_ms=1000, validate_only=validate_only
    )
    results: list[CreatePartitionsTopicResult] = (await client.call(request, version)).results
    return results


async def count_of(client: Client, name: str) -> int:
    [topic] = await describe_topics(client, name)
    return len(topic.partitions)


@pytest.mark.parametrize("version", range(4))
async def test_a_topic_gets_more_partitions_and_keeps_its_records(
    client: Client, version: int
) -> None:
    await create_topic(client, "t", partitions=2)
    await append(client, b"old", partition=1)

    [result] = await grow(client, to("t", 4), version=version)

    assert ("t", 0, None) == (result.name, result.error_code, result.error_message)
    assert 4 == await count_of(client, "t")
    await append(client, b"new", partition=3)
    assert [b"old"] == values_of(await fetch(client, "t", partition=1))
    assert [b"new"] == values_of(await fetch(client, "t", partition=3))


async def test_new_partitions_are_there_after_a_restart(tmp_path: Path) -> None:
    async with (
        open_broker(log_dirs=str(tmp_path)) as broker,
        connect(broker.bootstrap_servers) as client,
    ):
        await create_topic(client, "t")
        await grow(client, to("t", 3))
        await append(client, b"a", partition=2)
    async with broker_client(log_dirs=str(tmp_path)) as client:
        assert 3 == await count_of(client, "t")
        assert [b"a"] == values_of(await fetch(client, "t", partition=2))


async def test_their_logs_have_the_settings_of_the_topic(tmp_path: Path) -> None:
    async with broker_client(log_dirs=str(tmp_path)) as client:
        await create_topic(client, "t", internal_segment_bytes=150)
        await grow(client, to("t", 2))
        await append(client, b"a" * 50, b"b" * 50, partition=1)

        assert 2 == len(list((tmp_path / "t-1").glob("*.log")))


async def test_validate_only_makes_nothing(client: Client) -> None:
    await create_topic(client, "t")

    results = await grow(client, to("t", 3), to("missing", 3), validate_only=True)

    assert [0, error_codes.UNKNOWN_TOPIC_OR_PARTITION] == [each.error_code for each in results]
    assert 1 == await count_of(client, "t")


@pytest.mark.parametrize(
    ("count", "assignments", "message"),
    [
        (3, None, "Topic already has 3 partition(s)."),
        (-22, None, "The topic t currently has 3 partition(s); -22 would not be an increase."),
        (
            4,
            [],
            "Attempted to add 1 additional partition(s), but only 0 assignment(s) were specified.",
        ),
    ],
)
async def test_errors_have_the_words_that_programs_know_from_kafka(
    client: Client, count: int, assignments: list[list[int]] | None, message: str
) -> None:
    await create_topic(client, "t", partitions=3)

    [result] = await grow(client, to("t", count, assignments))

    assert message == result.error_message


@pytest.mark.parametrize(
    ("count", "assignments", "code"),
    [
        (3, None, error_codes.INVALID_PARTITIONS),  # as many as there are
        (2, None, error_codes.INVALID_PARTITIONS),
        (0, None, error_codes.INVALID_PARTITIONS),
        (-1, None, error_codes.INVALID_PARTITIONS),
        (5, [], error_codes.INVALID_REPLICA_ASSIGNMENT),
        (5, [[1]], error_codes.INVALID_REPLICA_ASSIGNMENT),
        (5, [[1], [1], [1]], error_codes.INVALID_REPLICA_ASSIGNMENT),
        (5, [[1], []], error_codes.INVALID_REPLICA_ASSIGNMENT),
        (5, [[1], [2]], error_codes.INVALID_REPLICA_ASSIGNMENT),
        (5, [[1], [1, 1]], error_codes.INVALID_REPLICA_ASSIGNMENT),
        (10_001, None, error_codes.POLICY_VIOLATION),
    ],
)
@pytest.mark.parametrize("validate_only", [False, True])
async def test_what_is_not_allowed_is_refused_and_changes_nothing(
    client: Client,
    count: int,
    assignments: list[list[int]] | None,
    code: int,
    validate_only: bool,
) -> None:
    await create_topic(client, "t", partitions=3)

    [result] = await grow(client, to("t", count, assignments), validate_only=validate_only)

    assert code == result.error_code
    assert result.error_message
    assert 3 == await count_of(client, "t")


INCONSISTENT = (
    "The manual partition assignment includes a partition with 2 replica(s), but this is not"
    " consistent with previous partitions, which have 1 replica(s)."
)


@pytest.mark.parametrize(
    ("count", "assignments", "text"),
    [
        (3, None, "Topic already has 3 partition(s)."),
        (1, None, "The topic t currently has 3 partition(s); 1 would not be an increase."),
        (-22, None, "The topic t currently has 3 partition(s); -22 would not be an increase."),
        (
            6,
            [[1]],
            "Attempted to add 3 additional partition(s), but only 1 assignment(s) were specified.",
        ),
        (
            4,
            [],
            "Attempted to add 1 additional partition(s), but only 0 assignment(s) were specified.",
        ),
        (4, [[]], "The manual partition assignment includes an empty replica list."),
        (4, [[1, 1]], "The manual partition assignment includes the broker 1 more than once."),
        (
            4,
            [[12]],
            "The manual partition assignment includes broker 12, but no such broker is registered.",
        ),
        (4, [[1, 2]], INCONSISTENT),
        (5, [[1], [1, 3]], INCONSISTENT),
    ],
)
async def test_reasons_are_those_of_kafka_which_programs_compare(
    count: int, assignments: list[list[int]] | None, text: str
) -> None:
    """The words of Kafka's PlaintextAdminIntegrationTest.testCreatePartitions."""
    async with open_broker(brokers=3) as broker, connect_to(broker, 1) as [client]:
        [created] = await create(client, wanted("t", 3))
        assert 0 == created.error_code

        [result] = await grow(client, to("t", count, assignments))

    assert text == result.error_message


async def test_more_partitions_may_be_assigned_to_the_one_broker(client: Client) -> None:
    await create_topic(client, "t")

    [result] = await grow(client, to("t", 3, [[1], [1]]))

    assert 0 == result.error_code
    assert 3 == await count_of(client, "t")


async def test_each_topic_that_grows_has_a_response_of_its_own(client: Client) -> None:
    await create_topic(client, "a")
    await create_topic(client, "b")

    results = await grow(client, to("a", 2), to("b", 2), to("missing", 2), to("b", 3))

    assert {
        "a": 0,
        "b": error_codes.INVALID_REQUEST,  # twice in the request
        "missing": error_codes.UNKNOWN_TOPIC_OR_PARTITION,
    } == {each.name: each.error_code for each in results}
    assert (2, 1) == (await count_of(client, "a"), await count_of(client, "b"))


async def test_partitions_whose_logs_cannot_be_made_are_not_there(tmp_path: Path) -> None:
    async with broker_client(log_dirs=str(tmp_path)) as client:
        await create_topic(client, "t")
        # A file where the folder of a partition has to be.
        (tmp_path / "t-2").touch()

        [result] = await grow(client, to("t", 4))

        assert error_codes.KAFKA_STORAGE_ERROR == result.error_code
        assert 1 == await count_of(client, "t")
        (tmp_path / "t-2").unlink()
        [result] = await grow(client, to("t", 4))
        assert 0 == result.error_code
        await append(client, b"a", partition=3)


NEVER_SEEN = b"\x01" * 16


async def delete(
    client: Client, *topics: str | bytes | DeleteTopicState
) -> list[DeletableTopicResult]:
    """Delete by name, by id, or by what else is said."""
    states = [
        topic
        if isinstance(topic, DeleteTopicState)
        else DeleteTopicState(name=topic)
        if isinstance(topic, str)
        else DeleteTopicState(topic_id=topic)
        for topic in topics
    ]
    results: list[DeletableTopicResult] = (
        await client.call(DeleteTopicsRequest(topics=states), 6)
    ).responses
    return results


async def names(client: Client) -> list[str | None]:
    return [topic.name for topic in await describe_topics(client)]


@pytest.mark.parametrize("version", range(7))
async def test_a_topic_is_deleted_by_name(client: Client, version: int) -> None:
    topic_id = (await create_topic(client, "t")).topic_id
    request = (
        DeleteTopicsRequest(topics=[DeleteTopicState(name="t")])
        if version >= 6
        else DeleteTopicsRequest(topic_names=["t"])
    )

    [result] = (await client.call(request, version)).responses

    assert ("t", 0, None) == (result.name, result.error_code, result.error_message)
    assert (topic_id if version >= 6 else bytes(16)) == result.topic_id
    assert [] == await names(client)


async def test_a_topic_is_deleted_by_id(client: Client) -> None:
    topic_id = (await create_topic(client, "t")).topic_id

    [result] = await delete(client, topic_id)

    assert ("t", topic_id, 0) == (result.name, result.topic_id, result.error_code)
    assert [] == await names(client)


async def test_its_records_and_folders_go_with_it(tmp_path: Path) -> None:
    async with broker_client(log_dirs=str(tmp_path)) as client:
        first = (await create_topic(client, "t", partitions=3)).topic_id
        await produce(client, "t", batch(b"old"))

        await delete(client, "t")
        # What is left has another name and is being removed.
        left = {"t-0", "t-1", "t-2"}.intersection(os.listdir(tmp_path))
        gone = await produce(client, "t", batch(b"a"))
        second = (await create_topic(client, "t")).topic_id

        assert set() == left
        assert error_codes.UNKNOWN_TOPIC_OR_PARTITION == gone.error_code
        assert [] == values_of(await fetch(client, "t"))
        assert first != second


async def test_what_is_not_there_is_an_error(client: Client) -> None:
    results = await delete(client, "missing", NEVER_SEEN)

    assert [
        ("missing", bytes(16), error_codes.UNKNOWN_TOPIC_OR_PARTITION),
        (None, NEVER_SEEN, error_codes.UNKNOWN_TOPIC_ID),
    ] == [(result.name, result.topic_id, result.error_code) for result in results]
    assert all(result.error_message for result in results)


async def test_a_name_and_an_id_together_delete_nothing(client: Client) -> None:
    """The id may be that of another topic than the one that bears the name by now."""
    first = (await create_topic(client, "a")).topic_id
    await create_topic(client, "b")

    results = await delete(client, DeleteTopicState(name="b", topic_id=first), DeleteTopicState())

    assert [error_codes.INVALID_REQUEST] * 2 == [result.error_code for result in results]
    assert ["a", "b"] == await names(client)


@pytest.mark.parametrize("by_id", [False, True])
async def test_a_topic_that_is_in_the_request_twice_stays(client: Client, by_id: bool) -> None:
    topic_id = (await create_topic(client, "t")).topic_id
    await create_topic(client, "other")

    results = await delete(client, "t", "other", topic_id if by_id else "t")

    invalid = error_codes.INVALID_REQUEST
    assert [invalid, 0, invalid] == [result.error_code for result in results]
    assert ["t"] == await names(client)


@pytest.mark.parametrize(
    ("version", "code"),
    [(2, error_codes.INVALID_REQUEST), (3, error_codes.TOPIC_DELETION_DISABLED)],
)
async def test_nothing_is_deleted_where_deletion_is_off(version: int, code: int) -> None:
    async with broker_client(delete_topic_enable=False) as client:
        await create_topic(client, "t")

        response = await client.call(DeleteTopicsRequest(topic_names=["t"]), version)

        assert code == response.responses[0].error_code
        assert ["t"] == await names(client)


async def test_many_topics_and_partitions_go_at_once(client: Client) -> None:
    for name in ("a", "b", "c"):
        await create_topic(client, name, partitions=20)

    results = await delete(client, "a", "c")

    assert [0, 0] == [result.error_code for result in results]
    assert ["b"] == await names(client)


async def test_offsets_go_with_a_topic_whose_folder_cannot_be_removed(tmp_path: Path) -> None:
    async with (
        open_broker(log_dirs=str(tmp_path)) as broker,
        connect(broker.bootstrap_servers) as client,
    ):
        await create_topic(client, "t")
        await commit(client, {"t": {0: 5}})
        shutil.rmtree(tmp_path / "t-0")

        [result] = await delete(client, "t")

        assert error_codes.KAFKA_STORAGE_ERROR == result.error_code
        assert [] == await names(client)
        await broker._cluster.writes.flush()
        await create_topic(client, "t")
        assert {("t", 0): -1} == await committed(client, {"t": [0]})


async def test_offsets_of_a_broker_that_is_killed_go_with_the_topic(tmp_path: Path) -> None:
    live, left = tmp_path / "live", tmp_path / "left"
    async with (
        open_broker(log_dirs=str(live)) as broker,
        connect(broker.bootstrap_servers) as client,
    ):
        await create_topic(client, "t")
        await commit(client, {"t": {0: 5}})
        await _forget(broker, "t")
        shutil.copytree(live, left)
    async with (
        open_broker(log_dirs=str(left)) as broker,
        connect(broker.bootstrap_servers) as client,
    ):
        await create_topic(client, "t")
        assert {("t", 0): -1} == await committed(client, {"t": [0]})


async def _forget(broker: Broker, name: str) -> None:
    """What a deletion does up to its commit in the database."""
    topic = broker._cluster.topics.get(name)
    assert topic is not None
    await broker._cluster.topics.delete(topic)
