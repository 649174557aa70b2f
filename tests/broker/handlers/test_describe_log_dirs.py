from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.calls import append, batch, create_topic
from support.client import Client, connect
from trionet import open_broker
from trionet.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResult,
)


async def ask(
    client: Client, topics: dict[str, list[int]] | None = None, version: int = 4
) -> DescribeLogDirsResult:
    """The one folder; of all partitions by default."""
    wanted = (
        None
        if topics is None
        else [
            DescribableLogDirTopic(topic=name, partitions=partitions)
            for name, partitions in topics.items()
        ]
    )
    response = await client.call(DescribeLogDirsRequest(topics=wanted), version)
    assert 0 == response.error_code
    [result] = response.results
    assert isinstance(result, DescribeLogDirsResult)
    return result


def sizes(result: DescribeLogDirsResult) -> dict[tuple[str, int], int]:
    return {
        (topic.name, each.partition_index): each.partition_size
        for topic in result.topics
        for each in topic.partitions
    }


@pytest.mark.parametrize("version", range(5))
async def test_the_folder_and_the_size_of_each_partition(tmp_path: Path, version: int) -> None:
    async with (
        open_broker(log_dirs=str(tmp_path)) as broker,
        connect(broker.bootstrap_servers) as client,
    ):
        await create_topic(client, "a", partitions=2)
        await create_topic(client, "b")
        await append(client, b"x" * 1000, b"y", topic="a", partition=1)

        result = await ask(client, version=version)

        size = len(batch(b"x" * 1000)) + len(batch(b"y"))
        assert (0, str(tmp_path)) == (result.error_code, result.log_dir)
        assert {("a", 0): 0, ("a", 1): size, ("b", 0): 0} == sizes(result)
        assert {(0, False)} == {
            (each.offset_lag, each.is_future_key)
            for topic in result.topics
            for each in topic.partitions
        }


async def test_the_room_on_the_disk(tmp_path: Path) -> None:
    async with (
        open_broker(log_dirs=str(tmp_path)) as broker,
        connect(broker.bootstrap_servers) as client,
    ):
        result = await ask(client)

        found = os.statvfs(tmp_path)
        assert found.f_blocks * found.f_frsize == result.total_bytes
        assert 0 < result.usable_bytes < result.total_bytes


async def test_in_memory_no_room_is_known(client: Client) -> None:
    await create_topic(client, "t")

    result = await ask(client)

    assert ("memory", -1, -1) == (result.log_dir, result.total_bytes, result.usable_bytes)
    assert {("t", 0): 0} == sizes(result)


async def test_only_what_was_asked_for_and_is_there(client: Client) -> None:
    await create_topic(client, "a", partitions=3)
    await create_topic(client, "b")

    result = await ask(client, {"a": [2, 0, 7, 2], "missing": [0]})

    assert {("a", 2): 0, ("a", 0): 0} == sizes(result)
    assert [2] == [len(topic.partitions) for topic in result.topics]
    assert {} == sizes(await ask(client, {}))
