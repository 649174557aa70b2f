from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.calls import batch, create_topic, describe_topics, produce
from support.client import Client, connect
from trionet import open_broker
from trionet.protocol import error_codes
from trionet.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
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


async def ask(
    client: Client, *topics: CreatableTopic, version: int = 7, **fields: Any
) -> list[CreatableTopicResult]:
    request = CreateTopicsRequest(topics=list(topics), **fields)
    results: list[CreatableTopicResult] = (await client.call(request, version)).topics
    return results


@pytest.mark.parametrize("version", range(8))
async def test_a_topic_is_created_and_can_be_written_at_once(client: Client, version: int) -> None:
    [result] = await ask(client, wanted("t", 3), version=version)

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
    [result] = await ask(client, wanted("t", configs={"retention.ms": "1000"}), version=5)

    assert result.configs is not None
    settings = {entry.name: (entry.value, entry.config_source) for entry in result.configs}
    assert ("1000", DYNAMIC_TOPIC_CONFIG) == settings["retention.ms"]
    assert ("1073741824", DEFAULT_CONFIG) == settings["segment.bytes"]


async def test_minus_1_stands_for_the_brokers_defaults() -> None:
    async with (
        open_broker(num_partitions=4) as broker,
        connect(broker.bootstrap_servers) as client,
    ):
        [result] = await ask(client, wanted("t", -1, -1))

        assert (0, 4, 1) == (result.error_code, result.num_partitions, result.replication_factor)


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        (wanted(""), error_codes.INVALID_TOPIC_EXCEPTION),
        (wanted("a b"), error_codes.INVALID_TOPIC_EXCEPTION),
        (wanted(".."), error_codes.INVALID_TOPIC_EXCEPTION),
        (wanted("x" * 250), error_codes.INVALID_TOPIC_EXCEPTION),
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

    [result] = await ask(client, topic, validate_only=validate_only)

    assert (code, bytes(16), None) == (result.error_code, result.topic_id, result.configs or None)
    assert (-1, -1) == (result.num_partitions, result.replication_factor)
    assert result.error_message
    assert ["there", "a.b"] == [each.name for each in await describe_topics(client)]


async def test_partitions_may_be_assigned_to_the_one_broker(client: Client) -> None:
    [result] = await ask(client, wanted("t", -1, -1, assignments={1: [1], 0: [1]}))

    assert (0, 2) == (result.error_code, result.num_partitions)


async def test_a_topic_that_is_only_validated_is_not_made(client: Client) -> None:
    [result] = await ask(client, wanted("t", 3), validate_only=True)

    assert (0, 3, bytes(16)) == (result.error_code, result.num_partitions, result.topic_id)
    assert result.configs
    assert [] == await describe_topics(client)


async def test_each_topic_has_a_response_of_its_own(client: Client) -> None:
    results = await ask(client, wanted("a"), wanted("b c"), wanted("d"))

    assert [("a", 0), ("b c", error_codes.INVALID_TOPIC_EXCEPTION), ("d", 0)] == [
        (result.name, result.error_code) for result in results
    ]
    assert ["a", "d"] == [topic.name for topic in await describe_topics(client)]


async def test_a_topic_that_is_in_the_request_twice_is_in_the_response_once_and_not_made(
    client: Client,
) -> None:
    results = await ask(client, wanted("a", 1), wanted("b"), wanted("a", 2))

    assert [("a", error_codes.INVALID_REQUEST), ("b", 0)] == [
        (result.name, result.error_code) for result in results
    ]
    assert ["b"] == [topic.name for topic in await describe_topics(client)]


async def test_what_a_topic_asks_for_and_does_not_get_is_logged(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    [result] = await ask(client, wanted("t", configs={"cleanup.policy": "compact"}))

    assert 0 == result.error_code
    assert "topic t: not applied by this version: cleanup.policy=compact" in caplog.text


async def test_a_topic_whose_folder_cannot_be_made_does_not_stay(tmp_path: Path) -> None:
    async with (
        open_broker(log_dirs=str(tmp_path)) as broker,
        connect(broker.bootstrap_servers) as client,
    ):
        in_the_way = tmp_path / "t-1"
        in_the_way.write_text("not a folder")

        [refused] = await ask(client, wanted("t", 2))
        known = await describe_topics(client)
        in_the_way.unlink()
        [created] = await ask(client, wanted("t", 2))
        answers = [await produce(client, "t", batch(b"a"), partition=index) for index in (0, 1)]

        assert (error_codes.KAFKA_STORAGE_ERROR, bytes(16)) == (
            refused.error_code,
            refused.topic_id,
        )
        assert [] == known
        assert 0 == created.error_code
        assert [0, 0] == [answer.error_code for answer in answers]
