from __future__ import annotations

from pathlib import Path

import pytest

from support.brokers import log_of
from support.calls import (
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    TIMESTAMP,
    batch,
    create_topic,
    list_offset,
    list_offsets_request,
    produce,
)
from support.client import Client, connect
from trionet import open_broker
from trionet.protocol import error_codes
from trionet.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from trionet.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)

EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -4, -5, -6


async def append_at(client: Client, *timestamps: int) -> None:
    """A record per timestamp, each in a batch of its own."""
    for timestamp in timestamps:
        await produce(client, "t", batch(b"x", timestamp=TIMESTAMP + timestamp))


@pytest.mark.parametrize("version", range(1, 12))
async def test_the_ends_of_the_log_and_a_time_in_it(client: Client, version: int) -> None:
    await create_topic(client, "t")
    await append_at(client, 0, 10, 20)

    earliest = await list_offset(client, "t", EARLIEST, version=version)
    latest = await list_offset(client, "t", LATEST, version=version)
    found = await list_offset(client, "t", TIMESTAMP + 10, version=version)

    epoch = 0 if version >= 4 else -1
    assert (0, 0, -1, epoch) == (
        earliest.error_code,
        earliest.offset,
        earliest.timestamp,
        earliest.leader_epoch,
    )
    assert (0, 3, -1) == (latest.error_code, latest.offset, latest.timestamp)
    assert (0, 1, TIMESTAMP + 10) == (found.error_code, found.offset, found.timestamp)


async def list_segments(client: Client, time: int, count: int = 10) -> tuple[int, list[int]]:
    """Error and offsets of a ListOffsets of version 0."""
    wanted = ListOffsetsPartition(partition_index=0, timestamp=time, max_num_offsets=count)
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=[wanted])])
    [topic] = (await client.call(request, 0)).topics
    [answer] = topic.partitions
    return answer.error_code, answer.old_style_offsets


@pytest.mark.parametrize("where", ["memory", "disk"])
async def test_version_0_lists_where_segments_begin(tmp_path: Path, where: str) -> None:
    settings = {"log.dirs": str(tmp_path)} if where == "disk" else {}
    async with open_broker(settings) as broker, connect(broker.bootstrap_servers) as client:
        await create_topic(client, "t", segment_bytes=1048576)
        for _ in range(5):
            await produce(client, "t", batch(b"v" * 500_000))
        now_ms = broker._state.now_ms()

        assert (0, [5, 4, 2, 0]) == await list_segments(client, LATEST)
        assert (0, [5, 4]) == await list_segments(client, LATEST, 2)
        assert (0, [0]) == await list_segments(client, EARLIEST)
        assert (0, [5, 4, 2, 0]) == await list_segments(client, now_ms + 60_000)
        assert (0, []) == await list_segments(client, now_ms - 60_000)
        assert (0, []) == await list_segments(client, LATEST, 0)
        assert (error_codes.UNSUPPORTED_VERSION, []) == await list_segments(client, MAX_TIMESTAMP)


async def test_version_0_lists_the_start_of_what_is_left(client: Client) -> None:
    await create_topic(client, "t")
    await append_at(client, 0, 1, 2)
    await delete_before(client, 2)

    assert (0, [2]) == await list_segments(client, EARLIEST)
    assert (0, [3, 2]) == await list_segments(client, LATEST)


async def test_version_0_lists_the_start_of_an_empty_log_once(client: Client) -> None:
    await create_topic(client, "t")

    assert (0, [0]) == await list_segments(client, LATEST)


async def test_version_0_lists_nothing_that_consumers_do_not_see(tmp_path: Path) -> None:
    async with (
        open_broker({"log.dirs": str(tmp_path)}) as broker,
        connect(broker.bootstrap_servers) as client,
    ):
        await create_topic(client, "t", flush_messages=1)
        await append_at(client, 0, 1)
        log_of(broker).append(batch(b"not flushed"), TIMESTAMP)

        assert (0, [2, 0]) == await list_segments(client, LATEST)


async def delete_before(client: Client, offset: int) -> None:
    partition = DeleteRecordsPartition(partition_index=0, offset=offset)
    topic = DeleteRecordsTopic(name="t", partitions=[partition])
    response = await client.call(DeleteRecordsRequest(topics=[topic], timeout_ms=1000), 2)
    assert 0 == response.topics[0].partitions[0].error_code


@pytest.mark.parametrize("where", ["memory", "disk"])
@pytest.mark.parametrize(
    ("time", "offset"),
    [(0, 0), (1, 1), (10, 1), (11, 3), (30, 3), (31, -1)],
)
async def test_a_time_gives_the_first_record_that_is_as_late(
    tmp_path: Path, where: str, time: int, offset: int
) -> None:
    settings = {"log.dirs": str(tmp_path)} if where == "disk" else {}
    async with open_broker(settings) as broker, connect(broker.bootstrap_servers) as client:
        await create_topic(client, "t")
        await append_at(client, 0, 10, 5, 30)

        found = await list_offset(client, "t", TIMESTAMP + time)

        assert (0, offset) == (found.error_code, found.offset)
        assert (-1 if offset < 0 else 0) == found.leader_epoch


async def test_a_time_inside_a_batch_gives_the_record_and_not_the_batch(client: Client) -> None:
    await create_topic(client, "t")
    await produce(client, "t", batch(b"a", b"b"))
    await append_at(client, 50)

    found = await list_offset(client, "t", TIMESTAMP + 1)

    assert (2, TIMESTAMP + 50) == (found.offset, found.timestamp)


async def test_the_largest_timestamp_is_that_of_the_first_record_that_has_it(
    client: Client,
) -> None:
    await create_topic(client, "t")
    await append_at(client, 0, 70, 70, 20)

    found = await list_offset(client, "t", MAX_TIMESTAMP)

    assert (1, TIMESTAMP + 70) == (found.offset, found.timestamp)


@pytest.mark.parametrize("timestamp", [0, TIMESTAMP, MAX_TIMESTAMP, LATEST_TIERED])
async def test_an_empty_log_has_no_record_for_any_time(client: Client, timestamp: int) -> None:
    await create_topic(client, "t")

    found = await list_offset(client, "t", timestamp)

    assert (0, -1, -1) == (found.error_code, found.offset, found.timestamp)


async def test_the_ends_of_an_empty_log_are_0(client: Client) -> None:
    await create_topic(client, "t")

    ends = [await list_offset(client, "t", end) for end in (EARLIEST, LATEST, EARLIEST_LOCAL)]

    assert [(0, 0)] * 3 == [(end.error_code, end.offset) for end in ends]


@pytest.mark.parametrize(
    ("timestamp", "since"),
    [
        (MAX_TIMESTAMP, 7),
        (EARLIEST_LOCAL, 8),
        (LATEST_TIERED, 9),
        (EARLIEST_PENDING_UPLOAD, 11),
    ],
)
async def test_a_time_that_is_none_means_nothing_before_its_version(
    client: Client, timestamp: int, since: int
) -> None:
    await create_topic(client, "t")

    before = await list_offset(client, "t", timestamp, version=since - 1)
    since_then = await list_offset(client, "t", timestamp, version=since)

    assert (error_codes.UNSUPPORTED_VERSION, -1) == (before.error_code, before.offset)
    assert error_codes.NONE == since_then.error_code


async def test_other_negative_times_mean_nothing_in_any_version(client: Client) -> None:
    await create_topic(client, "t")

    answer = await list_offset(client, "t", -7)

    assert error_codes.UNSUPPORTED_VERSION == answer.error_code


@pytest.mark.parametrize(
    ("epoch", "code"),
    [(-1, error_codes.NONE), (0, error_codes.NONE), (1, error_codes.UNKNOWN_LEADER_EPOCH)],
)
async def test_the_leader_epoch_is_0(client: Client, epoch: int, code: int) -> None:
    await create_topic(client, "t")
    request = list_offsets_request("t", [(0, LATEST)])
    request.topics[0].partitions[0].current_leader_epoch = epoch

    response = await client.call(request, 5)

    assert code == response.topics[0].partitions[0].error_code


async def test_each_partition_has_a_response_of_its_own(client: Client) -> None:
    await create_topic(client, "t", partitions=2)
    await produce(client, "t", batch(b"x"), partition=1)

    request = list_offsets_request("t", [(1, LATEST), (0, LATEST), (2, LATEST)])
    request.topics += list_offsets_request("missing", [(0, EARLIEST)]).topics
    response = await client.call(request, 11)

    unknown = error_codes.UNKNOWN_TOPIC_OR_PARTITION
    assert [("t", 1, 0, 1), ("t", 0, 0, 0), ("t", 2, unknown, -1), ("missing", 0, unknown, -1)] == [
        (topic.name, answer.partition_index, answer.error_code, answer.offset)
        for topic in response.topics
        for answer in topic.partitions
    ]


async def test_a_partition_asked_for_twice_is_an_error(client: Client) -> None:
    await create_topic(client, "t", partitions=2)

    request = list_offsets_request("t", [(0, LATEST), (1, LATEST), (0, EARLIEST)])
    response = await client.call(request, 11)

    invalid = error_codes.INVALID_REQUEST
    assert [(0, invalid), (1, 0), (0, invalid)] == [
        (answer.partition_index, answer.error_code) for answer in response.topics[0].partitions
    ]
