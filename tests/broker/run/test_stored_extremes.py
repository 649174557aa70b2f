"""Whatever a client may have stored, the broker starts with it again, and gives it back.

Every field of every request that stores something takes each of its extreme values, on the wire.
What the broker tells of its groups, offsets, topics, settings and transactions must then be the
same after a stop and after a kill.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from support.brokers import broker_client
from support.calls import append, create_topic, describe_topics, produce_request
from support.calls import batch as record_batch
from support.client import Client, connect
from support.config_calls import BROKER, OF_TOPIC, SET, TOPIC, alter, settings_of, value_of
from support.field_extremes import TEXTS, Extreme, extremes, integers
from support.group_calls import commit, commit_request, committed, join, join_request, sync_request
from support.transaction_calls import add_offsets, end, identity
from trionet import open_broker
from trionet.broker.config._dynamic_config import ADDRESS_LIMITS, DYNAMIC, LISTENER_LIMITS
from trionet.broker.config._topic_keys import TOPIC_KEYS
from trionet.protocol.error_codes import NONE
from trionet.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from trionet.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from trionet.protocol.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
)
from trionet.protocol.messages.api_versions import ApiVersionsRequest
from trionet.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from trionet.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from trionet.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from trionet.protocol.messages.describe_groups import DescribeGroupsRequest
from trionet.protocol.messages.describe_transactions import DescribeTransactionsRequest
from trionet.protocol.messages.end_txn import EndTxnRequest
from trionet.protocol.messages.init_producer_id import InitProducerIdRequest
from trionet.protocol.messages.list_groups import ListGroupsRequest
from trionet.protocol.messages.list_transactions import ListTransactionsRequest
from trionet.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from trionet.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from trionet.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from trionet.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

SESSION_MS = 1_800_000
# A setting of these can keep all clients out, also those of this test.
SHUT_OUT = (*LISTENER_LIMITS, ADDRESS_LIMITS)

Send = Callable[[Client], Awaitable[None]]


async def call(client: Client, extreme: Extreme, version: int) -> Any:
    """The response; None where this version cannot say that."""
    try:
        return await client.call(extreme.request, version)
    except (ValueError, TypeError):
        return None


# What is stored, one function for each kind of request.


async def commit_offsets(client: Client) -> None:
    for version in (0, 2, 9):
        request = commit_request({"t": {0: 5}}, group="commit", metadata="m")
        for number, extreme in enumerate(extremes(request, version)):
            if extreme.field != "group_id":
                extreme.request.group_id = f"commit {version} {number}"
            await call(client, extreme, version)


async def join_and_sync(client: Client) -> None:
    for static in (None, "i"):
        request = join_request(session_ms=SESSION_MS, rebalance_ms=1000, instance=static)
        for number, extreme in enumerate(extremes(request, 9)):
            if extreme.field != "group_id":
                extreme.request.group_id = f"join {static} {number}"
            joined = await call(client, extreme, 9)
            if joined is not None and joined.member_id and joined.error_code:
                extreme.request.member_id = joined.member_id
                joined = await call(client, extreme, 9)
            if joined is None or joined.error_code:
                continue
            sync = sync_request(
                joined,
                {joined.member_id: b"a"},
                group=extreme.request.group_id,
                instance=extreme.request.group_instance_id,
            )
            sync.protocol_type = extreme.request.protocol_type
            await client.call(sync, 5)


async def sync_assignments(client: Client) -> None:
    joined = await join(client, group="sync", session_ms=SESSION_MS)
    request = sync_request(joined, {joined.member_id: b"a"}, group="sync")
    for number, extreme in enumerate(extremes(request, 5)):
        group = f"sync {number}"
        joined = await join(client, group=group, session_ms=SESSION_MS)
        if extreme.field != "group_id":
            extreme.request.group_id = group
        if extreme.field != "generation_id":
            extreme.request.generation_id = joined.generation_id
        if extreme.request.member_id == request.member_id:
            extreme.request.member_id = joined.member_id
        for each in extreme.request.assignments:
            if each.member_id == request.member_id:
                each.member_id = joined.member_id
        await call(client, extreme, 5)


async def begin_transactions(client: Client) -> None:
    init = InitProducerIdRequest(transactional_id="init", transaction_timeout_ms=60_000)
    producer = await identity(client, "added")
    partitions = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="added",
        v3_and_below_producer_id=producer[0],
        v3_and_below_producer_epoch=producer[1],
        v3_and_below_topics=[AddPartitionsToTxnTopic(name="t", partitions=[0])],
    )
    offsets = AddOffsetsToTxnRequest(
        transactional_id="added", producer_id=producer[0], producer_epoch=producer[1], group_id="g"
    )
    requests: list[tuple[Any, int]] = [(init, 0), (init, 5), (partitions, 3), (offsets, 4)]
    for request, version in requests:
        for extreme in extremes(request, version):
            await call(client, extreme, version)


async def end_transactions(client: Client) -> None:
    request = EndTxnRequest(transactional_id="ended", committed=True)
    for number, extreme in enumerate(extremes(request, 5)):
        id = f"ended {number}"
        producer = await identity(client, id)
        assert NONE == await add_offsets(client, producer, "g", id=id)
        if extreme.field != "transactional_id":
            extreme.request.transactional_id = id
        if extreme.field != "producer_id":
            extreme.request.producer_id = producer[0]
        if extreme.field != "producer_epoch":
            extreme.request.producer_epoch = producer[1]
        await call(client, extreme, 5)


def in_transaction(group: str) -> TxnOffsetCommitRequest:
    return TxnOffsetCommitRequest(
        transactional_id=group,
        group_id=group,
        generation_id=-1,
        topics=[
            TxnOffsetCommitRequestTopic(
                name="t",
                partitions=[
                    TxnOffsetCommitRequestPartition(
                        partition_index=0, committed_offset=5, committed_metadata="m"
                    )
                ],
            )
        ],
    )


async def commit_in_transactions(client: Client) -> None:
    """Half of the transactions are committed; the others are still open when the broker ends."""
    for is_committed in (True, False):
        for number, extreme in enumerate(extremes(in_transaction("x"), 5)):
            id = f"offsets {is_committed} {number}"
            producer = await identity(client, id)
            request = extreme.request
            if extreme.field != "transactional_id":
                request.transactional_id = id
            if extreme.field != "group_id":
                request.group_id = id
            if extreme.field != "producer_id":
                request.producer_id = producer[0]
            if extreme.field != "producer_epoch":
                request.producer_epoch = producer[1]
            await call(client, extreme, 5)
            if is_committed:
                await end(client, producer, id=id)


async def create_topics(client: Client) -> None:
    wanted = CreatableTopic(name="new", num_partitions=1, replication_factor=1)
    wanted.configs = [CreatableTopicConfig(name="retention.ms", value="1")]
    assigned = CreatableTopic(name="new", num_partitions=-1, replication_factor=-1)
    assigned.assignments = [CreatableReplicaAssignment(partition_index=0, broker_ids=[1])]
    number = 0
    for topic in (wanted, assigned):
        for extreme in extremes(CreateTopicsRequest(topics=[topic]), 7):
            number += 1
            if extreme.field != "name":
                extreme.request.topics[0].name = f"new-{number}"
            await call(client, extreme, 7)
    grown = CreatePartitionsTopic(name="grown", count=3)
    grown.assignments = [CreatePartitionsAssignment(broker_ids=[1])] * 2
    await create_topic(client, "grown")
    for extreme in extremes(CreatePartitionsRequest(topics=[grown]), 3):
        await call(client, extreme, 3)


def texts() -> Iterator[str]:
    """Values of settings: numbers of all sizes and spellings, and what is no number."""
    yield from map(str, integers(32))
    yield from map(str, integers(64))
    yield from (*TEXTS, "true", "false", "1e308", "-1e308", "1e-400", "nan", "inf", "0.5")
    yield from ("0_1", "+1", "01", " 1 ", "1.0", "0:1", "*", ",", "a,,b", "compact,delete")
    yield from ("gzip", "producer", "LogAppendTime", str(10**30))


async def set_topics(client: Client) -> None:
    """A topic for each value, so that no value of a key takes the place of another."""
    for number, text in enumerate(texts()):
        name = f"set-{number}"
        await create_topic(client, name)
        for key in TOPIC_KEYS:
            await alter(client, TOPIC, name, (key, SET, text))
    resource = AlterConfigsResource(
        resource_type=TOPIC, resource_name="set-0", configs=[AlterableConfig(name="flush.ms")]
    )
    for extreme in extremes(AlterConfigsRequest(resources=[resource]), 2):
        await call(client, extreme, 2)


async def update_features(client: Client) -> None:
    update = FeatureUpdateKey(feature="transaction.version", max_version_level=1, upgrade_type=2)
    for extreme in extremes(UpdateFeaturesRequest(feature_updates=[update]), 2):
        await call(client, extreme, 2)


async def write_records(client: Client) -> None:
    await create_topic(client, "logs")
    await append(client, b"a", b"b", topic="logs")
    marker = WritableTxnMarker(producer_id=5, producer_epoch=1, transaction_result=True)
    marker.topics = [WritableTxnMarkerTopic(name="logs", partition_indexes=[0])]
    requests: list[tuple[Any, int]] = [
        (WriteTxnMarkersRequest(markers=[marker]), 2),
        (produce_request("logs", {0: record_batch(b"c")}), 9),
        (
            DeleteRecordsRequest(
                topics=[
                    DeleteRecordsTopic(
                        name="logs",
                        partitions=[DeleteRecordsPartition(partition_index=0, offset=1)],
                    )
                ]
            ),
            2,
        ),
    ]
    for request, version in requests:
        for extreme in extremes(request, version):
            if extreme.field != "acks":
                await call(client, extreme, version)


# What is told of it.


async def told(client: Client) -> dict[str, str]:
    """All that was acknowledged and that must outlive the process."""
    groups = [each.group_id for each in (await client.call(ListGroupsRequest(), 5)).groups]
    fetch = OffsetFetchRequest(
        require_stable=True,  # so that open transactions are told, too
        groups=[OffsetFetchRequestGroup(group_id=group, topics=None) for group in sorted(groups)],
    )
    offsets = [each for each in (await client.call(fetch, 9)).groups if each.topics]
    described = (await client.call(DescribeGroupsRequest(groups=sorted(groups)), 6)).groups
    topics = {topic.name or "": topic for topic in await describe_topics(client)}
    ids = (await client.call(ListTransactionsRequest(), 2)).transaction_states
    transactions = await client.call(
        DescribeTransactionsRequest(
            transactional_ids=sorted(each.transactional_id for each in ids)
        ),
        0,
    )
    features = await client.call(ApiVersionsRequest(), 4)
    settings = {
        name: {
            key: each.value
            for key, each in (await settings_of(client, TOPIC, name)).items()
            if each.source == OF_TOPIC
        }
        for name in topics
    }
    stable = [each for each in described if each.group_state == "Stable"]
    return {
        "features": repr(features.finalized_features),
        **{f"offsets of {each.group_id!r}": repr(each) for each in offsets},
        **{f"group {each.group_id!r}": repr(each) for each in stable},
        **{
            f"topic {name}": f"{each.topic_id!r} {len(each.partitions)}"
            for name, each in topics.items()
        },
        **{f"settings of {name}": repr(each) for name, each in settings.items()},
        # Not the state: in TV2, a transaction without records or offsets is not stored.
        **{
            f"transaction {each.transactional_id!r}": (
                f"{each.producer_id} {each.producer_epoch} {each.transaction_timeout_ms}"
            )
            for each in transactions.transaction_states
        },
    }


@asynccontextmanager
async def first_node(data: Path, brokers: int) -> AsyncIterator[Client]:
    """A connection to the first node of a broker."""
    async with (
        open_broker(log_dirs=str(data), brokers=brokers) as broker,
        connect(broker.bootstrap_servers.split(",")[0]) as client,
    ):
        yield client


async def check_given_back(
    data: Path, stored: Send, caplog: pytest.LogCaptureFixture, brokers: int = 1
) -> None:
    """Store things, stop and kill the broker, and compare what it tells then."""
    killed = data.with_name("killed")
    async with first_node(data, brokers) as client:
        await create_topic(client, "t")
        await stored(client)
        before = await told(client)
        shutil.copytree(data, killed)
    for again in (killed, data):
        caplog.clear()
        async with first_node(again, brokers) as client:
            after = await told(client)
        assert before.keys() == after.keys()
        for what in before:
            assert before[what] == after[what]
        assert [] == [each for each in caplog.records if "unreadable" in each.getMessage()]
        assert [] == [each for each in caplog.records if each.exc_info]


@pytest.mark.parametrize("is_in_transaction", [False, True])
async def test_a_leader_epoch_that_is_no_epoch_is_given_back(
    tmp_path: Path, is_in_transaction: bool
) -> None:
    """Kafka stores what a client sends, and starts with it."""
    async with broker_client(log_dirs=str(tmp_path)) as client:
        await create_topic(client, "t")
        if is_in_transaction:
            producer = await identity(client, "g")
            request = in_transaction("g")
            request.producer_id, request.producer_epoch = producer
            request.topics[0].partitions[0].committed_leader_epoch = -2
            await client.call(request, 5)
            assert NONE == (await end(client, producer, id="g")).error_code
        else:
            code = await commit(client, {"t": {0: 5}}, version=9, leader_epoch=-2)
            assert {("t", 0): NONE} == code
    async with broker_client(log_dirs=str(tmp_path)) as client:
        assert {("t", 0): 5} == await committed(client)
        fetch = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
        [group] = (await client.call(fetch, 9)).groups
        assert -2 == group.topics[0].partitions[0].committed_leader_epoch


@pytest.mark.slow
@pytest.mark.parametrize(
    "stored",
    [
        commit_offsets,
        join_and_sync,
        sync_assignments,
        begin_transactions,
        end_transactions,
        commit_in_transactions,
        create_topics,
        set_topics,
        update_features,
        write_records,
    ],
)
async def test_extremes_are_given_back_after_a_stop_and_after_a_kill(
    tmp_path: Path, stored: Send, caplog: pytest.LogCaptureFixture
) -> None:
    await check_given_back(tmp_path / "data", stored, caplog)


@pytest.mark.slow
async def test_extremes_are_given_back_by_several_nodes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await check_given_back(tmp_path / "data", create_topics, caplog, brokers=2)


@pytest.mark.slow
async def test_a_broker_starts_with_any_settings_that_were_accepted(tmp_path: Path) -> None:
    keys = [key for key in sorted(DYNAMIC) if not key.startswith(SHUT_OUT)]
    accepted: dict[str, str | None] = {}
    for text in ("-1", "0", "1", str(2**31 - 1), str(2**63 - 1), "", "0.5", "true", "a,,b", "\0"):
        async with broker_client(log_dirs=str(tmp_path)) as client:
            found = await settings_of(client, BROKER, "1", *keys)
            assert accepted == {key: found[key].value for key in accepted}
            for key in keys:
                for name in ("", "1"):
                    code, _ = await alter(client, BROKER, name, (key, SET, text))
                    if not code:
                        accepted[key] = (await value_of(client, BROKER, "1", key))[0]
    assert len(accepted) > 10
