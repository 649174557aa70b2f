from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.brokers import log_of
from support.calls import (
    EARLIEST,
    LATEST,
    append,
    create_topic,
    describe_topics,
    fetch,
    list_offset,
)
from support.client import Client, connect
from support.trionet_process import trionet_broker_process
from trionet import Broker
from trionet.protocol import error_codes
from trionet.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)


async def ask(
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
    assert (0, epoch, 2) == await ask(client, 0, version=version)
    if version >= 2:
        assert (0, epoch, 2) == await ask(client, 0, current=0, version=version)


async def test_an_earlier_epoch_ends_where_the_next_one_began(
    broker: Broker, client: Client
) -> None:
    await create_topic(client, "t")
    await append(client, b"a", b"b")
    await log_of(broker, "t").begin_epoch(4)
    await append(client, b"c")

    assert [(0, 0, 2), (0, 0, 2), (0, 4, 3), (0, -1, -1)] == [
        await ask(client, epoch) for epoch in (0, 3, 4, 5)
    ]


async def test_unknown_epochs_have_no_end(client: Client) -> None:
    await create_topic(client, "t")

    assert (0, -1, -1) == await ask(client, -1)
    assert (0, -1, -1) == await ask(client, 7)


async def test_a_client_whose_epoch_is_over_or_has_not_begun_is_rejected(
    broker: Broker, client: Client
) -> None:
    await create_topic(client, "t")
    await log_of(broker, "t").begin_epoch(4)

    fenced, unknown = error_codes.FENCED_LEADER_EPOCH, error_codes.UNKNOWN_LEADER_EPOCH
    assert (fenced, -1, -1) == await ask(client, 0, current=3)
    assert (unknown, -1, -1) == await ask(client, 0, current=5)
    assert fenced == (await fetch(client, "t", leader_epoch=3, version=12)).error_code
    assert unknown == (await fetch(client, "t", leader_epoch=5, version=12)).error_code
    assert 0 == (await fetch(client, "t", leader_epoch=4, version=12)).error_code


async def test_what_is_not_there_is_unknown(client: Client) -> None:
    await create_topic(client, "t")

    unknown = (error_codes.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)
    assert unknown == await ask(client, 0, partition=1)
    assert unknown == await ask(client, 0, topic="missing")


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
            assert (0, 0, 1) == await ask(client, 0, current=1)
            assert (0, 1, 3) == await ask(client, 1, current=1)
            assert 0 == (await list_offset(client, "t", EARLIEST)).leader_epoch
            assert 1 == (await list_offset(client, "t", LATEST)).leader_epoch
