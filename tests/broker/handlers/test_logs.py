"""Offsets are looked up, records deleted, and log directories described."""

from __future__ import annotations

import os
import signal
from operator import attrgetter
from pathlib import Path

import pytest

from support.brokers import broker_client, log_of, waiting
from support.calls import (
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    TIMESTAMP,
    append,
    batch,
    create_reserved_topic,
    create_topic,
    describe_topics,
    fetch,
    fetch_request,
    list_offset,
    list_offsets_request,
    only_partition,
    produce,
    values_of,
)
from support.calls import batch as batch_of
from support.client import Client, connect
from support.hostile_batches import changed
from support.transactions import commit
from support.trionet_process import trionet_broker_process
from trionet import Broker, open_broker
from trionet.protocol import error_codes
from trionet.protocol._partition_compaction import TAGS_SINCE, PartitionCompaction, decode_tags
from trionet.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from trionet.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResult,
)
from trionet.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from trionet.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from trionet.protocol.records.compression._codecs import GZIP

EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -4, -5, -6


async def append_at(client: Client, *timestamps: int) -> None:
    """A record per timestamp, each in a batch of its own."""
    for timestamp in timestamps:
        await produce(client, "t", batch(b"x", timestamp=TIMESTAMP + timestamp))


@pytest.mark.parametrize("version", range(2, 12))
async def test_lookups_of_committed_records_end_at_the_last_stable_offset(
    broker: Broker, client: Client, version: int
) -> None:
    """A record that cannot be read yet is not found, also if it has the greatest timestamp."""
    await create_topic(client, "t")
    await append_at(client, 0, 10)
    log = log_of(broker)
    records = batch(
        b"open",
        timestamp=TIMESTAMP + 20,
        producer_id=7,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )
    log.append(records, broker._state.now_ms(), 1)

    async def find(timestamp: int, isolation_level: int) -> tuple[int, int]:
        request = list_offsets_request("t", [(0, timestamp)])
        request.isolation_level = isolation_level
        [answered] = (await client.call(request, version)).topics
        [answer] = answered.partitions
        assert 0 == answer.error_code
        return answer.offset, answer.timestamp

    times = [LATEST, EARLIEST, TIMESTAMP + 5, TIMESTAMP + 15]
    times += [MAX_TIMESTAMP] if version >= 7 else []
    uncommitted = [await find(each, 0) for each in times]
    committed = [await find(each, 1) for each in times]
    commit(log, 7, version=1)
    ended = [await find(each, 1) for each in times]

    newest = [(2, TIMESTAMP + 20)] if version >= 7 else []
    both = [(0, -1), (1, TIMESTAMP + 10)]
    assert [(3, -1), *both, (2, TIMESTAMP + 20), *newest] == uncommitted
    assert [(2, -1), *both, (-1, -1), *([(-1, -1)] if version >= 7 else [])] == committed
    assert [(4, -1), *both, (2, TIMESTAMP + 20)] == ended[:4]


@pytest.mark.parametrize("version", range(1, 12))
async def test_the_ends_of_the_log_and_a_time_in_it(client: Client, version: int) -> None:
    await create_topic(client, "t")
    await append_at(client, 0, 10, 20)

    earliest = await list_offset(client, "t", EARLIEST, version=version)
    latest = await list_offset(client, "t", LATEST, version=version)
    found = await list_offset(client, "t", TIMESTAMP + 10, version=version)

    epoch = 0 if version >= 4 else -1
    assert (0, 0, -1, epoch) == attrgetter("error_code", "offset", "timestamp", "leader_epoch")(
        earliest
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


async def ask_epoch(
    client: Client,
    epoch: int,
    *,
    current: int = -1,
    topic: str = "t",
    partition: int = 0,
    version: int = 4,
) -> tuple[int, int, int]:
    """Error code, leader epoch and end offset."""
    wanted = OffsetForLeaderPartition(
        partition=partition, leader_epoch=epoch, current_leader_epoch=current
    )
    request = OffsetForLeaderEpochRequest(
        topics=[OffsetForLeaderTopic(topic=topic, partitions=[wanted])]
    )
    [answered] = (await client.call(request, version)).topics
    [answer] = answered.partitions
    assert isinstance(answer, EpochEndOffset)
    assert (topic, partition) == (answered.topic, answer.partition)
    return answer.error_code, answer.leader_epoch, answer.end_offset


@pytest.mark.parametrize("version", range(5))
async def test_the_present_epoch_ends_with_the_log(client: Client, version: int) -> None:
    await create_topic(client, "t")
    await append(client, b"a", b"b")

    epoch = 0 if version >= 1 else -1
    assert (0, epoch, 2) == await ask_epoch(client, 0, version=version)
    if version >= 2:
        assert (0, epoch, 2) == await ask_epoch(client, 0, current=0, version=version)


async def test_an_earlier_epoch_ends_where_the_next_one_began(
    broker: Broker, client: Client
) -> None:
    await create_topic(client, "t")
    await append(client, b"a", b"b")
    await log_of(broker, "t").begin_epoch(4)
    await append(client, b"c")

    assert [(0, 0, 2), (0, 0, 2), (0, 4, 3), (0, -1, -1)] == [
        await ask_epoch(client, epoch) for epoch in (0, 3, 4, 5)
    ]


async def test_unknown_epochs_have_no_end(client: Client) -> None:
    await create_topic(client, "t")

    assert (0, -1, -1) == await ask_epoch(client, -1)
    assert (0, -1, -1) == await ask_epoch(client, 7)


async def test_a_client_whose_epoch_is_over_or_has_not_begun_is_rejected(
    broker: Broker, client: Client
) -> None:
    await create_topic(client, "t")
    await log_of(broker, "t").begin_epoch(4)

    fenced, unknown = error_codes.FENCED_LEADER_EPOCH, error_codes.UNKNOWN_LEADER_EPOCH
    assert (fenced, -1, -1) == await ask_epoch(client, 0, current=3)
    assert (unknown, -1, -1) == await ask_epoch(client, 0, current=5)
    assert fenced == (await fetch(client, "t", leader_epoch=3, version=12)).error_code
    assert unknown == (await fetch(client, "t", leader_epoch=5, version=12)).error_code
    assert 0 == (await fetch(client, "t", leader_epoch=4, version=12)).error_code


async def test_what_is_not_there_is_unknown(client: Client) -> None:
    await create_topic(client, "t")

    unknown = (error_codes.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)
    assert unknown == await ask_epoch(client, 0, partition=1)
    assert unknown == await ask_epoch(client, 0, topic="missing")


@pytest.mark.slow
async def test_after_a_kill_consumers_can_distinguish_what_they_have_from_what_is_there(
    tmp_path: Path,
) -> None:
    """Two of three records were read, and then lost: the end of their epoch says so."""
    with trionet_broker_process(tmp_path) as (address, process):
        async with connect(address) as client:
            await create_topic(client, "t")
            await append(client, b"a", b"b", b"c")
        process.kill()
        process.wait()
    log = tmp_path / "t-0" / "00000000000000000000.log"
    os.truncate(log, log.stat().st_size // 3)

    with trionet_broker_process(tmp_path) as (address, _):
        async with connect(address) as client:
            await append(client, b"other", b"records")

            [topic] = await describe_topics(client, "t")
            assert 1 == topic.partitions[0].leader_epoch
            assert (0, 0, 1) == await ask_epoch(client, 0, current=1)
            assert (0, 1, 3) == await ask_epoch(client, 1, current=1)
            assert 0 == (await list_offset(client, "t", EARLIEST)).leader_epoch
            assert 1 == (await list_offset(client, "t", LATEST)).leader_epoch


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


async def test_what_is_not_there_cannot_be_deleted(client: Client) -> None:
    await create_topic(client, "t")

    unknown = (error_codes.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert unknown == await delete(client, 0, topic="missing")
    assert unknown == await delete(client, 0, partition=1)
    assert unknown == await delete(client, 0, partition=-1)


async def test_records_of_a_compacted_topic_stay(client: Client) -> None:
    await create_topic(client, "t", cleanup_policy="compact")
    await create_topic(client, "both", cleanup_policy="compact,delete")
    for topic in ("t", "both"):
        await produce(client, topic, batch(b"a", key=b"k"))

    assert (error_codes.POLICY_VIOLATION, -1) == await delete(client, 1)
    assert [b"a"] == values_of(await fetch(client, "t"))
    assert (0, 1) == await delete(client, 1, topic="both")


async def test_records_of_an_internal_topic_stay(client: Client) -> None:
    await create_reserved_topic(client, "__consumer_offsets")

    assert (error_codes.INVALID_TOPIC_EXCEPTION, -1) == await delete(
        client, 0, topic="__consumer_offsets"
    )


async def test_each_deletion_has_a_response_of_its_own(client: Client) -> None:
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
    async with broker_client(log_dirs=str(tmp_path)) as client:
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


async def ask_dirs(
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
    async with broker_client(log_dirs=str(tmp_path)) as client:
        await create_topic(client, "a", partitions=2)
        await create_topic(client, "b")
        await append(client, b"x" * 1000, b"y", topic="a", partition=1)

        result = await ask_dirs(client, version=version)

        size = len(batch(b"x" * 1000)) + len(batch(b"y"))
        assert (0, str(tmp_path)) == (result.error_code, result.log_dir)
        assert {("a", 0): 0, ("a", 1): size, ("b", 0): 0} == sizes(result)
        assert {(0, False)} == {
            (each.offset_lag, each.is_future_key)
            for topic in result.topics
            for each in topic.partitions
        }


async def test_the_room_on_the_disk(tmp_path: Path) -> None:
    async with broker_client(log_dirs=str(tmp_path)) as client:
        result = await ask_dirs(client)

        found = os.statvfs(tmp_path)
        assert found.f_blocks * found.f_frsize == result.total_bytes
        assert 0 < result.usable_bytes < result.total_bytes


async def test_in_memory_no_room_is_known(client: Client) -> None:
    await create_topic(client, "t")

    result = await ask_dirs(client)

    assert ("memory", -1, -1) == (result.log_dir, result.total_bytes, result.usable_bytes)
    assert {("t", 0): 0} == sizes(result)


async def test_only_what_was_asked_for_and_is_there(client: Client) -> None:
    await create_topic(client, "a", partitions=3)
    await create_topic(client, "b")

    result = await ask_dirs(client, {"a": [2, 0, 7, 2], "missing": [0]})

    assert {("a", 2): 0, ("a", 0): 0} == sizes(result)
    assert [2] == [len(topic.partitions) for topic in result.topics]
    assert {} == sizes(await ask_dirs(client, {}))


def compactions(result: DescribeLogDirsResult) -> dict[tuple[str, int], PartitionCompaction | None]:
    return {
        (topic.name, each.partition_index): decode_tags(each.unknown_tags)
        for topic in result.topics
        for each in topic.partitions
    }


async def test_how_partitions_of_compacted_topics_are_cleaned(
    broker: Broker, client: Client
) -> None:
    await create_topic(client, "t")
    await create_topic(client, "table", partitions=2, cleanup_policy="compact")
    for _ in range(10):
        await produce(client, "table", batch(b"v", key=b"k"))

    before = compactions(await ask_dirs(client))
    await broker.compact("table")
    after = compactions(await ask_dirs(client))

    size = 10 * len(batch(b"v", key=b"k"))
    never = PartitionCompaction()
    assert {("t", 0): None, ("table", 0): never, ("table", 1): never} == before
    cleaned = after["table", 0]
    assert cleaned is not None
    assert 1_700_000_000_000 < cleaned.cleaned_ms
    assert (size, 10, 1, None) == (
        cleaned.bytes_read,
        cleaned.records_read,
        cleaned.records_written,
        cleaned.uncleanable,
    )
    assert 0 < cleaned.bytes_written < size


async def test_why_a_partition_is_not_cleaned_any_more(broker: Broker, client: Client) -> None:
    await create_topic(client, "table", cleanup_policy="compact")
    cluster = broker._cluster
    log = cluster.folder.logs["table", 0]
    no_gzip = changed(batch(b"v", key=b"k"), attributes=GZIP)
    log.append(no_gzip, cluster.now_ms(), records_are_checked=True)  # as if it were damaged
    log.roll(cluster.now_ms())
    await cluster.cleaner.sweep()

    found = compactions(await ask_dirs(client))["table", 0]

    assert found is not None
    assert 1.0 == found.dirty_ratio
    assert "gzip" in (found.uncleanable or "")


@pytest.mark.parametrize("version", range(5))
async def test_versions_without_tagged_fields_say_nothing_about_cleaning(
    client: Client, version: int
) -> None:
    await create_topic(client, "table", cleanup_policy="compact")

    result = await ask_dirs(client, version=version)

    assert (version >= TAGS_SINCE) == (compactions(result)["table", 0] is not None)
