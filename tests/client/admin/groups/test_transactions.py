from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

import trionet
from support.admin_answers import coordinated_by
from support.admin_errors import code_of
from support.calls import TIMESTAMP
from support.scripted_node import Hangup, ScriptedNode, Seen
from support.transactional import identity, initialize, produce_in
from trionet import ApiError
from trionet.client._topic_partition import TopicPartition
from trionet.client.admin import FencedProducer
from trionet.protocol import error_codes
from trionet.protocol.messages.init_producer_id import InitProducerIdResponse
from trionet.testing import MemoryNetwork, control, open_raw_peer

IDS = ["a", "b", "c"]
T0 = TopicPartition("t", 0)


def numbered(seen: Seen) -> InitProducerIdResponse:
    return InitProducerIdResponse(producer_id=ord(seen.body.transactional_id), producer_epoch=1)


async def test_producers_of_many_ids_are_fenced_at_the_same_time(
    network: MemoryNetwork, node: ScriptedNode, autojump_clock: MockClock
) -> None:
    node.replies["FindCoordinator"] = coordinated_by(node)
    node.replies["InitProducerId"] = lambda _: None
    async with trionet.open_admin(node.address, network=network) as admin:
        with trio.move_on_after(1):
            await admin.fence_producers(IDS)

    asked = [seen.body for seen in node.seen if seen.name == "InitProducerId"]
    assert IDS == sorted(each.transactional_id for each in asked)
    # As Kafka's: request.timeout.ms.
    assert {30_000} == {each.transaction_timeout_ms for each in asked}
    assert 1 == node.names().count("FindCoordinator")


async def test_error_of_one_id_leaves_the_others(
    network: MemoryNetwork, node: ScriptedNode, autojump_clock: MockClock
) -> None:
    def reply(seen: Seen) -> InitProducerIdResponse:
        answer = numbered(seen)
        if seen.body.transactional_id == "b":
            answer.error_code = error_codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return answer

    node.replies["FindCoordinator"] = coordinated_by(node)
    node.replies["InitProducerId"] = reply
    async with trionet.open_admin(node.address, network=network) as admin:
        results = await admin.fence_producers(IDS)
        with pytest.raises(ApiError, match="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"):
            await admin.terminate_transaction("b")

    assert IDS == list(results)
    assert "TRANSACTIONAL_ID_AUTHORIZATION_FAILED" == code_of(results["b"])
    assert [FencedProducer(97, 1), FencedProducer(99, 1)] == [results["a"], results["c"]]


async def test_connection_lost_with_one_id_is_asked_about_again(
    network: MemoryNetwork, node: ScriptedNode, autojump_clock: MockClock
) -> None:
    lost = iter([True])
    node.replies["FindCoordinator"] = coordinated_by(node)
    node.replies["InitProducerId"] = lambda seen: Hangup() if next(lost, False) else numbered(seen)
    async with trionet.open_admin(node.address, network=network) as admin:
        results = await admin.fence_producers(IDS)

    assert [FencedProducer(ord(each), 1) for each in IDS] == list(results.values())


async def test_hanging_transactions_are_those_that_no_described_id_has() -> None:
    async with trionet.open_broker() as broker, open_raw_peer(broker.bootstrap_servers) as peer:
        kit = control(broker)
        await kit.create_topic("t", 1)
        producer = identity(await peer.call(*initialize("x")))
        await peer.call(*produce_in("x", producer, "t", b"a"))
        async with trionet.open_admin(broker.bootstrap_servers) as admin:
            known = await admin.find_hanging_transactions([T0])
            recent = await admin.find_hanging_transactions([T0], written_before_ms=TIMESTAMP)
            kit.faults.fail("DescribeTransactions", "TRANSACTIONAL_ID_NOT_FOUND")
            expired = await admin.find_hanging_transactions([T0])
            kit.faults.fail("DescribeTransactions", "UNKNOWN_SERVER_ERROR")
            with pytest.raises(ApiError, match="UNKNOWN_SERVER_ERROR"):
                await admin.find_hanging_transactions([T0])

    assert [{T0: []}] * 2 == [known, recent]
    [found] = expired.checked()[T0]
    assert (producer[0], 0) == (found.producer_id, found.transaction_start_offset)


async def test_partitions_whose_producers_are_unknown_have_their_error() -> None:
    async with trionet.open_broker() as broker:
        kit = control(broker)
        await kit.create_topic("t", 1)
        kit.faults.fail("DescribeProducers", "TOPIC_AUTHORIZATION_FAILED")
        async with trionet.open_admin(broker.bootstrap_servers) as admin:
            results = await admin.find_hanging_transactions([T0])

    assert "TOPIC_AUTHORIZATION_FAILED" == code_of(results[T0])
