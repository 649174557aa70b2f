from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from support.calls import batch, create_topic, describe_topics, fetch, produce, values_of
from support.client import Client, connect
from support.group_calls import commit, committed
from trionet import Broker, open_broker
from trionet.protocol import error_codes
from trionet.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicState,
)

NEVER_SEEN = b"\x01" * 16


async def ask(
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

    [result] = await ask(client, topic_id)

    assert ("t", topic_id, 0) == (result.name, result.topic_id, result.error_code)
    assert [] == await names(client)


async def test_its_records_and_folders_go_with_it(tmp_path: Path) -> None:
    async with (
        open_broker(log_dirs=str(tmp_path)) as broker,
        connect(broker.bootstrap_servers) as client,
    ):
        first = (await create_topic(client, "t", partitions=3)).topic_id
        await produce(client, "t", batch(b"old"))

        await ask(client, "t")
        # What is left has another name and is being removed.
        left = {"t-0", "t-1", "t-2"}.intersection(os.listdir(tmp_path))
        gone = await produce(client, "t", batch(b"a"))
        second = (await create_topic(client, "t")).topic_id

        assert set() == left
        assert error_codes.UNKNOWN_TOPIC_OR_PARTITION == gone.error_code
        assert [] == values_of(await fetch(client, "t"))
        assert first != second


async def test_what_is_not_there_is_an_error(client: Client) -> None:
    results = await ask(client, "missing", NEVER_SEEN)

    assert [
        ("missing", bytes(16), error_codes.UNKNOWN_TOPIC_OR_PARTITION),
        (None, NEVER_SEEN, error_codes.UNKNOWN_TOPIC_ID),
    ] == [(result.name, result.topic_id, result.error_code) for result in results]
    assert all(result.error_message for result in results)


async def test_a_name_and_an_id_together_delete_nothing(client: Client) -> None:
    """The id may be that of another topic than the one that bears the name by now."""
    first = (await create_topic(client, "a")).topic_id
    await create_topic(client, "b")

    results = await ask(client, DeleteTopicState(name="b", topic_id=first), DeleteTopicState())

    assert [error_codes.INVALID_REQUEST] * 2 == [result.error_code for result in results]
    assert ["a", "b"] == await names(client)


@pytest.mark.parametrize("by_id", [False, True])
async def test_a_topic_that_is_in_the_request_twice_stays(client: Client, by_id: bool) -> None:
    topic_id = (await create_topic(client, "t")).topic_id
    await create_topic(client, "other")

    results = await ask(client, "t", "other", topic_id if by_id else "t")

    invalid = error_codes.INVALID_REQUEST
    assert [invalid, 0, invalid] == [result.error_code for result in results]
    assert ["t"] == await names(client)


@pytest.mark.parametrize(
    ("version", "code"),
    [(2, error_codes.INVALID_REQUEST), (3, error_codes.TOPIC_DELETION_DISABLED)],
)
async def test_nothing_is_deleted_where_deletion_is_off(version: int, code: int) -> None:
    async with (
        open_broker(delete_topic_enable=False) as broker,
        connect(broker.bootstrap_servers) as client,
    ):
        await create_topic(client, "t")

        response = await client.call(DeleteTopicsRequest(topic_names=["t"]), version)

        assert code == response.responses[0].error_code
        assert ["t"] == await names(client)


async def test_many_topics_and_partitions_go_at_once(client: Client) -> None:
    for name in ("a", "b", "c"):
        await create_topic(client, name, partitions=20)

    results = await ask(client, "a", "c")

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

        [result] = await ask(client, "t")

        assert error_codes.KAFKA_STORAGE_ERROR == result.error_code
        assert [] == await names(client)
        await broker._cluster.group_store.flush()
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
