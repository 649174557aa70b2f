from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from support.brokers import waiting
from support.calls import (
    EARLIEST,
    MAX_TIMESTAMP,
    TIMESTAMP,
    append,
    create_topic,
    fetch,
    fetch_request,
    list_offset,
    only_partition,
    produce,
    values_of,
)
from support.calls import batch as batch_of
from support.client import Client, connect
from support.trionet_process import trionet_broker_process
from trionet import Broker, open_broker
from trionet.protocol import error_codes
from trionet.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)

HIGH_WATERMARK = -1


def request(topic: str, offsets: dict[int, int]) -> DeleteRecordsRequest:
    return DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(
                name=topic,
                partitions=[
                    DeleteRecordsPartition(partition_index=index, offset=offset)
                    for index, offset in offsets.items()
                ],
            )
        ],
        timeout_ms=1000,
    )


async def delete(
    client: Client, offset: int, *, topic: str = "t", partition: int = 0, version: int = 2
) -> tuple[int, int]:
    """Error code and low watermark."""
    response = await client.call(request(topic, {partition: offset}), version)
    [answered] = response.topics
    [result] = answered.partitions
    assert isinstance(result, DeleteRecordsPartitionResult)
    assert (topic, partition) == (answered.name, result.partition_index)
    return result.error_code, result.low_watermark


@pytest.mark.parametrize("version", range(3))
async def test_records_below_the_offset_are_gone(client: Client, version: int) -> None:
    await create_topic(client, "t")
    await append(client, b"a", b"b", b"c")

    assert (0, 2) == await delete(client, 2, version=version)

    below = await fetch(client, "t", 1)
    left = await fetch(client, "t", 2)
    assert error_codes.OFFSET_OUT_OF_RANGE == below.error_code
    assert ([b"c"], 2) == (values_of(left), left.log_start_offset)
    assert 2 == (await list_offset(client, "t", EARLIEST)).offset
    assert 2 == (await list_offset(client, "t", TIMESTAMP)).offset
    assert 2 == (await list_offset(client, "t", MAX_TIMESTAMP)).offset
    assert 2 == (await produce(client, "t", batch_of(b"d"))).log_start_offset


async def test_minus_one_deletes_up_to_the_high_watermark(client: Client) -> None:
    await create_topic(client, "t")
    await append(client, b"a", b"b")

    assert (0, 2) == await delete(client, HIGH_WATERMARK)
    assert [] == values_of(await fetch(client, "t", 2))
    await append(client, b"c")
    assert [b"c"] == values_of(await fetch(client, "t", 2))


async def test_a_lower_offset_than_the_present_start_changes_nothing(client: Client) -> None:
    await create_topic(client, "t")
    await append(client, b"a", b"b", b"c")

    await delete(client, 2)

    assert (0, 2) == await delete(client, 1)
    assert (0, 2) == await delete(client, 0)


@pytest.mark.parametrize("offset", [-2, -(2**63), 3, 2**63 - 1])
async def test_an_offset_that_is_not_in_the_partition_is_out_of_range(
    client: Client, offset: int
) -> None:
    await create_topic(client, "t")
    await append(client, b"a", b"b")

    assert (error_codes.OFFSET_OUT_OF_RANGE, -1) == await delete(client, offset)
    assert [b"a", b"b"] == values_of(await fetch(client, "t"))


async def test_what_is_not_there_is_unknown(client: Client) -> None:
    await create_topic(client, "t")

    unknown = (error_codes.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert unknown == await delete(client, 0, topic="missing")
    assert unknown == await delete(client, 0, partition=1)
    assert unknown == await delete(client, 0, partition=-1)


async def test_records_of_a_compacted_topic_stay(client: Client) -> None:
    await create_topic(client, "t", cleanup_policy="compact")
    await create_topic(client, "both", cleanup_policy="compact,delete")
    await append(client, b"a")
    await append(client, b"a", topic="both")

    assert (error_codes.POLICY_VIOLATION, -1) == await delete(client, 1)
    assert [b"a"] == values_of(await fetch(client, "t"))
    assert (0, 1) == await delete(client, 1, topic="both")


async def test_records_of_an_internal_topic_stay(client: Client) -> None:
    await create_topic(client, "__consumer_offsets")

    assert (error_codes.INVALID_TOPIC_EXCEPTION, -1) == await delete(
        client, 0, topic="__consumer_offsets"
    )


async def test_each_partition_has_a_response_of_its_own(client: Client) -> None:
    await create_topic(client, "t", partitions=2)
    await append(client, b"a", b"b")

    response = await client.call(request("t", {0: 1, 1: 1, 2: 0}), 2)

    [topic] = response.topics
    unknown = error_codes.UNKNOWN_TOPIC_OR_PARTITION
    assert [(0, 0, 1), (1, error_codes.OFFSET_OUT_OF_RANGE, -1), (2, unknown, -1)] == [
        (each.partition_index, each.error_code, each.low_watermark) for each in topic.partitions
    ]


async def test_the_last_offset_counts_of_a_partition_that_is_named_twice(client: Client) -> None:
    await create_topic(client, "t")
    await append(client, b"a", b"b", b"c")
    twice = request("t", {0: 3})
    twice.topics += request("t", {0: 1}).topics

    [topic] = (await client.call(twice, 2)).topics

    assert [1] == [each.low_watermark for each in topic.partitions]


async def test_a_waiting_fetch_learns_of_it(broker: Broker, client: Client) -> None:
    await create_topic(client, "t")
    async with connect(broker.bootstrap_servers) as other:
        await append(other, b"a", b"b", b"c")
        wanted = fetch_request({"t": {0: 1}}, max_wait_ms=2**31 - 1, min_bytes=10_000)
        await client.send(wanted, 12)
        await waiting(broker, 1)

        await delete(other, 2)

        data = only_partition(await client.receive())
        assert error_codes.OFFSET_OUT_OF_RANGE == data.error_code


async def test_whole_segments_below_leave_the_disk(tmp_path: Path) -> None:
    async with (
        open_broker(log_dirs=str(tmp_path)) as broker,
        connect(broker.bootstrap_servers) as client,
    ):
        await create_topic(client, "t", internal_segment_bytes=150)
        await append(client, *(b"%050d" % number for number in range(5)))

        await delete(client, 3)

        assert [3, 4] == sorted(int(path.stem) for path in (tmp_path / "t-0").glob("*.log"))


@pytest.mark.slow
@pytest.mark.parametrize("offset", [2, HIGH_WATERMARK])
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
async def test_what_was_deleted_stays_deleted_when_the_broker_comes_back(
    tmp_path: Path, how: signal.Signals, offset: int
) -> None:
    with trionet_broker_process(tmp_path) as (address, process):
        async with connect(address) as client:
            await create_topic(client, "t", partitions=2)
            await append(client, b"a", b"b", b"c")
            await append(client, b"a", b"b", b"c", partition=1)
            error_code, low_watermark = await delete(client, offset)
        os.kill(process.pid, how)
        process.wait()

    with trionet_broker_process(tmp_path) as (address, _):
        async with connect(address) as client:
            assert 0 == error_code
            assert low_watermark == (await list_offset(client, "t", EARLIEST)).offset
            assert error_codes.OFFSET_OUT_OF_RANGE == (await fetch(client, "t", 1)).error_code
            left = [b"a", b"b", b"c"][low_watermark:]
            assert left == values_of(await fetch(client, "t", low_watermark))
            assert [b"a", b"b", b"c"] == values_of(await fetch(client, "t", partition=1))
