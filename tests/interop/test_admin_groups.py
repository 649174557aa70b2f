"""Our admin client, and the groups and transactions of a real Kafka node."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

import trionet
from support.admin_errors import code_of
from support.admin_groups import be_in_group
from support.administered_kafka import Kafka, coordinated, fresh
from support.eventually import eventually
from trionet import Admin, ApiError
from trionet.client._topic_partition import TopicPartition
from trionet.client.admin import (
    CommittedOffset,
    FencedProducer,
    TransactionListing,
)
from trionet.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from trionet.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from trionet.protocol.messages.init_producer_id import InitProducerIdRequest
from trionet.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from trionet.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    Subtopology,
    Topology,
)

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]
MEMBER = "AAAAAAAAAAAAAAAAAAAAAQ"


@pytest.fixture
async def admin(kafka: Kafka) -> AsyncIterator[Admin]:
    async with trionet.open_admin(kafka.bootstrap) as admin:
        yield admin


async def test_classic_groups(admin: Admin) -> None:
    await fresh(admin, "a")
    await coordinated(admin, "g")
    await be_in_group(admin, "static")

    described = (await admin.describe_groups(["g", "none"], include_operations=True)).errors
    assert {"none": "GROUP_ID_NOT_FOUND"} == {name: code_of(e) for name, e in described.items()}
    group = (await admin.describe_groups(["g"])).checked()["g"]
    assert ("classic", "Stable", "range") == (group.type, group.state, group.assignor)
    assert [{TopicPartition("a", 0)}] == [each.assignment for each in group.members]
    assert "Stable" == (await admin.list_groups(types=["classic"]))["g"].state
    assert "NON_EMPTY_GROUP" == code_of((await admin.delete_groups(["g"]))["g"])
    assert {"static": None} == await admin.remove_members("g")
    assert {"g": None} == await admin.delete_groups(["g"])


async def test_committed_offsets(admin: Admin) -> None:
    first = await fresh(admin, "committed")
    other = TopicPartition("committed", 7)

    done = await admin.alter_group_offsets("committing", {first: CommittedOffset(0, "why")})

    assert {first: None} == done
    found = await admin.list_group_offsets(["committing"], require_stable=True)
    assert {first: CommittedOffset(0, "why")} == found.checked()["committing"]
    some = (await admin.list_group_offsets({"committing": [first, other]})).checked()
    assert some["committing"][other] is None
    assert {first: None} == await admin.delete_group_offsets("committing", [first])


async def test_groups_that_the_broker_divides(admin: Admin) -> None:
    first = await fresh(admin, "k")
    await coordinated(admin, "kip848")
    heartbeat = ConsumerGroupHeartbeatRequest(
        group_id="kip848",
        member_id=MEMBER,
        rebalance_timeout_ms=30_000,
        subscribed_topic_names=["k"],
        server_assignor="uniform",
        topic_partitions=[],
    )
    assert 0 == (await admin.request(heartbeat)).error_code

    group = (await admin.describe_groups(["kip848"])).checked()["kip848"]

    (member,) = group.members
    assert ("consumer", "uniform") == (group.type, group.assignor)
    assert (frozenset({first}), MEMBER, ("k",), False) == (
        member.target_assignment,
        member.id,
        member.topics,
        member.is_classic,
    )
    assert ["kip848"] == list(await admin.list_groups(types=["consumer"]))


async def test_share_groups(admin: Admin) -> None:
    first = await fresh(admin, "s")
    await coordinated(admin, "share")
    heartbeat = ShareGroupHeartbeatRequest(
        group_id="share", member_id=MEMBER, subscribed_topic_names=["s"]
    )
    assert 0 == (await admin.request(heartbeat)).error_code

    group = (await admin.describe_share_groups(["share"])).checked()["share"]
    assert ("share", [MEMBER]) == (group.type, [each.id for each in group.members])
    assert "share" == (await admin.list_groups(types=["share"]))["share"].type
    with pytest.raises(ApiError, match="NON_EMPTY_GROUP"):
        await admin.alter_share_group_offsets("share", {first: 0})
    heartbeat.member_epoch = -1
    heartbeat.subscribed_topic_names = None
    await admin.request(heartbeat)
    assert {first: None} == await admin.alter_share_group_offsets("share", {first: 0})
    offsets = (await admin.list_share_group_offsets(["share"])).checked()["share"].checked()
    assert 0 == getattr(offsets[first], "offset", None)
    assert {"s": None} == await admin.delete_share_group_offsets("share", ["s"])
    assert {"share": None} == await admin.delete_groups(["share"])


async def test_streams_groups(admin: Admin) -> None:
    await fresh(admin, "st")
    await coordinated(admin, "streams")
    heartbeat = StreamsGroupHeartbeatRequest(
        group_id="streams",
        member_id=MEMBER,
        rebalance_timeout_ms=30_000,
        topology=Topology(
            epoch=0, subtopologies=[Subtopology(subtopology_id="0", source_topics=["st"])]
        ),
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
        process_id="process",
        client_tags=[],
        task_offsets=None,
        task_end_offsets=None,
    )
    assert 0 == (await admin.request(heartbeat)).error_code

    group = (await admin.describe_streams_groups(["streams"])).checked()["streams"]

    assert {"0"} == set(group.subtopologies)
    assert ("st",) == group.subtopologies["0"].source_topics
    assert [MEMBER] == [each.id for each in group.members]


async def test_transactions(admin: Admin) -> None:
    first = await fresh(admin, "x")
    begin = InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=60_000)
    fenced = await admin.fence_producers(["tx"])  # finds the coordinator, too
    began = await admin.request(begin)
    add = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="tx",
        v3_and_below_producer_id=began.producer_id,
        v3_and_below_producer_epoch=began.producer_epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name="x", partitions=[0])],
    )
    await admin.request(add, version_max=3)

    assert isinstance(fenced["tx"], FencedProducer)
    described = await admin.describe_transactions(["tx", "none"])
    assert "TRANSACTIONAL_ID_NOT_FOUND" == code_of(described.pop("none"))
    transaction = described.checked()["tx"]
    assert ("Ongoing", began.producer_id, frozenset({first}), 60_000) == (
        transaction.state,
        transaction.producer_id,
        transaction.partitions,
        transaction.timeout_ms,
    )
    assert transaction.started_ms is not None
    listed = await admin.list_transactions(states=["Ongoing"])
    assert {"tx": "Ongoing"} == {id: each.state for id, each in listed.items()}
    assert {} == await admin.list_transactions(pattern="other.*")
    with pytest.raises(ApiError, match="Nonsense"):
        await admin.list_transactions(states=["Nonsense"])
    after = await admin.terminate_transaction("tx")
    assert after.producer_epoch > began.producer_epoch

    async def open_ones() -> dict[str, TransactionListing]:
        return await admin.list_transactions(states=["Ongoing", "PrepareAbort"])

    await eventually(open_ones, lambda found: not found)
    (state,) = (await admin.describe_producers([first])).checked()[first]
    # The coordinator has ended it already: once more is allowed, by an older one is not.
    ended = {"producer_id": state.producer_id, "producer_epoch": state.producer_epoch}
    await admin.abort_transaction(first, **ended, coordinator_epoch=state.coordinator_epoch or 0)
    with pytest.raises(ApiError, match="TRANSACTION_COORDINATOR_FENCED"):
        await admin.abort_transaction(first, **ended)
