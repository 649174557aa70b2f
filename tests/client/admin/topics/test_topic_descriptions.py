from __future__ import annotations

import pytest
from trio.testing import MockClock

import trionet
from support.admin_errors import code_of
from support.scripted_node import ScriptedNode
from trionet import Admin
from trionet.client.admin import AclOperation, NewTopic, _topics
from trionet.errors import WireFormatError
from trionet.protocol._wire import uuid_text
from trionet.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseTopic,
    ResponseCursor,
)
from trionet.testing import MemoryNetwork


async def test_topics_are_described_by_name_and_by_id(admin: Admin) -> None:
    made = (await admin.create_topics([NewTopic("a", 2), "b"])).checked()

    found = await admin.describe_topics(["a", "unknown"], ids=[made["b"].id])

    assert "UNKNOWN_TOPIC_OR_PARTITION" == code_of(found.pop("unknown"))
    a, b = found.checked().values()
    assert ("a", made["a"].id, False, None) == (a.name, a.id, a.is_internal, a.operations)
    assert [0, 1] == list(a.partitions)
    first = a.partitions[0]
    assert (1, 0, (1,), (1,), ()) == (
        first.leader,
        first.leader_epoch,
        first.replicas,
        first.in_sync,
        first.offline,
    )
    assert ("b", made["b"].id) == (b.name, b.id)


async def test_what_the_caller_may_do_is_reported_on_request(admin: Admin) -> None:
    await admin.create_topics(["a"])

    found = (await admin.describe_topics(["a"], include_operations=True)).checked()

    operations = found["a"].operations
    assert operations is not None
    assert {AclOperation.READ, AclOperation.WRITE} < operations


async def test_unknown_id_is_an_error_of_its_own(admin: Admin) -> None:
    made = (await admin.create_topics(["a"])).checked()
    await admin.delete_topics(["a"])

    found = await admin.describe_topics(ids=[made["a"].id])

    assert "UNKNOWN_TOPIC_ID" == code_of(found[made["a"].id])


async def test_many_partitions_come_in_several_responses(
    admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_topics, "PARTITIONS_PER_RESPONSE", 2)
    await admin.create_topics([NewTopic("a", 1), NewTopic("b", 5), NewTopic("c", 2)])

    found = (await admin.describe_topics(["c", "b", "a"])).checked()

    assert {"c": [0, 1], "b": [0, 1, 2, 3, 4], "a": [0]} == {
        name: list(each.partitions) for name, each in found.items()
    }


async def test_topics_of_many_brokers() -> None:
    async with (
        trionet.open_broker(brokers=3) as broker,
        trionet.open_admin(broker.bootstrap_servers) as admin,
    ):
        await admin.create_topics([NewTopic("a", 3, 2)])

        found = (await admin.describe_topics(["a"])).checked()

        assert {1, 2, 3} == {each.leader for each in found["a"].partitions.values()}
        assert all(2 == len(each.replicas) for each in found["a"].partitions.values())


async def test_response_about_no_topic_or_a_nameless_one_is_an_error_of_the_topic(
    autojump_clock: MockClock,
) -> None:
    node, id = ScriptedNode(network := MemoryNetwork()), uuid_text(b"i" * 16)
    nameless = [DescribeTopicPartitionsResponseTopic(name=None)]
    node.replies["DescribeTopicPartitions"] = lambda _: DescribeTopicPartitionsResponse(
        topics=nameless
    )
    async with node.listening(), trionet.open_admin(node.address, network=network) as admin:
        found = await admin.describe_topics(["a"], ids=[id])

    assert ["UNKNOWN_SERVER_ERROR"] * 2 == [code_of(found["a"]), code_of(found[id])]


async def test_cursor_that_does_not_move_on_is_an_error_and_not_followed_for_ever(
    autojump_clock: MockClock,
) -> None:
    node = ScriptedNode(network := MemoryNetwork())
    node.replies["DescribeTopicPartitions"] = lambda _: DescribeTopicPartitionsResponse(
        next_cursor=ResponseCursor(topic_name="a", partition_index=3)
    )
    async with node.listening(), trionet.open_admin(node.address, network=network) as admin:
        with pytest.raises(WireFormatError, match="does not move on"):
            await admin.describe_topics(["a"])

    assert 2 == node.names().count("DescribeTopicPartitions")
