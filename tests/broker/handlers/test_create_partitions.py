from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from support.calls import append, create_topic, describe_topics, fetch, values_of
from support.client import Client, connect
from trionet import open_broker
from trionet.protocol import error_codes
from trionet.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


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


async def ask(
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

    [result] = await ask(client, to("t", 4), version=version)

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
        await ask(client, to("t", 3))
        await append(client, b"a", partition=2)
    async with (
        open_broker(log_dirs=str(tmp_path)) as broker,
        connect(broker.bootstrap_servers) as client,
    ):
        assert 3 == await count_of(client, "t")
        assert [b"a"] == values_of(await fetch(client, "t", partition=2))


async def test_their_logs_have_the_settings_of_the_topic(tmp_path: Path) -> None:
    async with (
        open_broker(log_dirs=str(tmp_path)) as broker,
        connect(broker.bootstrap_servers) as client,
    ):
        await create_topic(client, "t", internal_segment_bytes=150)
        await ask(client, to("t", 2))
        await append(client, b"a" * 50, b"b" * 50, partition=1)

        assert 2 == len(list((tmp_path / "t-1").glob("*.log")))


async def test_validate_only_makes_nothing(client: Client) -> None:
    await create_topic(client, "t")

    results = await ask(client, to("t", 3), to("missing", 3), validate_only=True)

    assert [0, error_codes.UNKNOWN_TOPIC_OR_PARTITION] == [each.error_code for each in results]
    assert 1 == await count_of(client, "t")


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

    [result] = await ask(client, to("t", count, assignments), validate_only=validate_only)

    assert code == result.error_code
    assert result.error_message
    assert 3 == await count_of(client, "t")


async def test_partitions_may_be_assigned_to_the_one_broker(client: Client) -> None:
    await create_topic(client, "t")

    [result] = await ask(client, to("t", 3, [[1], [1]]))

    assert 0 == result.error_code
    assert 3 == await count_of(client, "t")


async def test_each_topic_has_a_response_of_its_own(client: Client) -> None:
    await create_topic(client, "a")
    await create_topic(client, "b")

    results = await ask(client, to("a", 2), to("b", 2), to("missing", 2), to("b", 3))

    assert {
        "a": 0,
        "b": error_codes.INVALID_REQUEST,  # twice in the request
        "missing": error_codes.UNKNOWN_TOPIC_OR_PARTITION,
    } == {each.name: each.error_code for each in results}
    assert (2, 1) == (await count_of(client, "a"), await count_of(client, "b"))


async def test_partitions_whose_logs_cannot_be_made_are_not_there(tmp_path: Path) -> None:
    async with (
        open_broker(log_dirs=str(tmp_path)) as broker,
        connect(broker.bootstrap_servers) as client,
    ):
        await create_topic(client, "t")
        # A file where the folder of a partition has to be.
        (tmp_path / "t-2").touch()

        [result] = await ask(client, to("t", 4))

        assert error_codes.KAFKA_STORAGE_ERROR == result.error_code
        assert 1 == await count_of(client, "t")
        (tmp_path / "t-2").unlink()
        [result] = await ask(client, to("t", 4))
        assert 0 == result.error_code
        await append(client, b"a", partition=3)
