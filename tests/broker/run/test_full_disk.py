"""A disk that is full: clients are told, nothing acknowledged is lost, and it goes on by itself.

Kafka takes such a folder offline until the broker is started again; this broker takes what fits,
and everything again when there is room.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from support.brokers import broker_and_client, read_all
from support.calls import append, batch, create_topic, describe_topics, fetch, produce
from support.client import Client, connect
from support.group_calls import commit, committed
from support.small_disk import SmallDisk, small_disk
from support.trionet_process import trionet_broker_process
from trionet.protocol.error_codes import (
    COORDINATOR_NOT_AVAILABLE,
    KAFKA_STORAGE_ERROR,
    NONE,
    OFFSET_OUT_OF_RANGE,
)
from trionet.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from trionet.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from trionet.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)

pytestmark = pytest.mark.slow

SIZE = 16 * 1024 * 1024
PARTITIONS = 3
VALUE = bytes(20_000)
# More than what commits may put into the pages that the database has already.
COMMITS_MAX = 1000


@pytest.fixture(params=["tmpfs", "ext4"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SmallDisk]:
    path = tmp_path / "disk"
    path.mkdir()
    with small_disk(path, SIZE, request.param) as disk:
        yield disk


@pytest.fixture
async def client(disk: SmallDisk) -> AsyncIterator[Client]:
    """Of a broker whose data is on the disk, with a topic `t` of small segments."""
    async with broker_and_client(log_dirs=str(disk.path / "data")) as (_, client):
        await create_topic(client, "t", PARTITIONS, internal_segment_bytes=200_000)
        yield client


async def produce_until_full(client: Client) -> dict[int, list[bytes]]:
    """The values that were acknowledged, by partition, when none of the partitions takes more."""
    taken: dict[int, list[bytes]] = {partition: [] for partition in range(PARTITIONS)}
    open_ones = set(taken)
    while open_ones:
        for partition in sorted(open_ones):
            value = b"%d " % len(taken[partition]) + VALUE
            answer = await produce(client, "t", batch(value), partition=partition)
            if answer.error_code:
                assert KAFKA_STORAGE_ERROR == answer.error_code
                assert answer.error_message
                open_ones.remove(partition)
            else:
                assert len(taken[partition]) == answer.base_offset
                taken[partition].append(value)
    return taken


async def test_what_was_acknowledged_is_there_and_nothing_else(
    disk: SmallDisk, client: Client
) -> None:
    taken = await produce_until_full(client)

    assert all(taken.values())
    for partition, values in taken.items():
        assert values == await read_all(client, partition=partition)


async def test_records_are_taken_again_when_there_is_room(disk: SmallDisk, client: Client) -> None:
    ballast = 4_000_000
    (disk.path / "ballast").write_bytes(bytes(ballast))
    taken = await produce_until_full(client)

    disk.give_back()
    more = await produce_until_full_again(client, taken)

    assert ballast / 2 < sum(map(len, more))
    for partition, values in taken.items():
        assert values == await read_all(client, partition=partition)


async def produce_until_full_again(client: Client, taken: dict[int, list[bytes]]) -> list[bytes]:
    """Go on with partition 0 as far as it goes; what it took."""
    more: list[bytes] = []
    while True:
        value = b"again %d " % len(more) + VALUE
        answer = await produce(client, "t", batch(value))
        if answer.error_code:
            return more
        assert len(taken[0]) == answer.base_offset
        taken[0].append(value)
        more.append(value)


async def test_records_can_be_deleted_to_make_room(disk: SmallDisk, client: Client) -> None:
    taken = await produce_until_full(client)
    disk.fill()

    assert (NONE, len(taken[1])) == await delete_records(client, 1, -1)
    await append(client, VALUE, VALUE, VALUE, partition=2)


async def test_records_can_be_deleted_where_that_makes_no_room(
    disk: SmallDisk, client: Client
) -> None:
    taken = await produce_until_full(client)
    disk.fill()
    for offset in (1, 2, 3):
        for partition in taken:
            assert (NONE, offset) == await delete_records(client, partition, offset)
            assert (
                OFFSET_OUT_OF_RANGE == (await fetch(client, "t", 0, partition=partition)).error_code
            )


async def delete_records(client: Client, partition: int, offset: int) -> tuple[int, int]:
    wanted = DeleteRecordsPartition(partition_index=partition, offset=offset)
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="t", partitions=[wanted])])
    [topic] = (await client.call(request, 2)).topics
    [result] = topic.partitions
    return result.error_code, result.low_watermark


async def create(client: Client, name: str) -> int:
    wanted = CreatableTopic(name=name, num_partitions=200, replication_factor=-1)
    request = CreateTopicsRequest(topics=[wanted])
    [result] = (await client.call(request, 7)).topics
    error_code: int = result.error_code
    return error_code


async def grow(client: Client, partitions: int) -> int:
    request = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name="t", count=partitions, assignments=None)]
    )
    [result] = (await client.call(request, 3)).results
    error_code: int = result.error_code
    return error_code


async def test_topics_that_do_not_fit_are_not_there(disk: SmallDisk, client: Client) -> None:
    disk.fill()

    refused = [await create(client, "new"), await grow(client, 300)]

    assert [KAFKA_STORAGE_ERROR] * 2 == refused
    assert [("t", PARTITIONS)] == [
        (topic.name, len(topic.partitions)) for topic in await describe_topics(client)
    ]
    disk.give_back()
    assert [NONE, NONE] == [await create(client, "new"), await grow(client, 300)]
    await append(client, b"a", topic="new", partition=199)
    await append(client, b"a", partition=299)


async def test_commits_that_do_not_fit_are_refused_and_the_last_one_counts(
    disk: SmallDisk, client: Client
) -> None:
    assert {("t", 0): NONE} == await commit(client, {"t": {0: 1}})
    disk.fill()
    last, error_code = 1, NONE
    for offset in range(2, COMMITS_MAX):
        [error_code] = (await commit(client, {"t": {0: offset}}, metadata="m" * 4000)).values()
        if error_code:
            break
        last = offset

    assert COORDINATOR_NOT_AVAILABLE == error_code
    assert {("t", 0): last} == await committed(client)
    disk.give_back()
    assert {("t", 0): NONE} == await commit(client, {"t": {0: 5000}})
    assert {("t", 0): 5000} == await committed(client)


@pytest.mark.parametrize("how", ["stopped", "killed"])
async def test_a_broker_that_ends_on_a_full_disk_has_everything_when_it_comes_back(
    disk: SmallDisk, tmp_path: Path, how: str
) -> None:
    """If it is stopped, it says so in one line."""
    data, log = disk.path / "data", tmp_path / "log"
    (disk.path / "ballast").write_bytes(bytes(4_000_000))
    with trionet_broker_process(data, log=log) as (address, process):
        async with connect(address) as client:
            await create_topic(client, "t", PARTITIONS, internal_segment_bytes=200_000)
            taken = await produce_until_full(client)
        disk.fill()
        if how == "stopped":
            process.terminate()
            assert 3 == process.wait()
            [line] = [line for line in log.read_text().splitlines() if " ERROR " in line]
            assert "t-0, t-1, t-2 could not be flushed: No space left on device" in line
        else:
            process.kill()
            process.wait()
    disk.give_back()

    with trionet_broker_process(data) as (address, process):
        async with connect(address) as client:
            for partition, values in taken.items():
                assert values == await read_all(client, partition=partition)
                await append(client, b"more", partition=partition)
        process.terminate()
        assert 0 == process.wait()
