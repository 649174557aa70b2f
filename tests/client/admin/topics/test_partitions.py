from __future__ import annotations

from typing import Any

import pytest
from trio.testing import MockClock

import trionet
from support.admin_answers import leading, offset_of
from support.admin_errors import code_of
from support.scripted_node import ScriptedNode
from trionet import Admin, Broker, UnsupportedVersionError
from trionet.client._topic_partition import TopicPartition
from trionet.client.admin import ListedOffset, NewTopic, OffsetSpec
from trionet.client.admin._partitions import HIGH_WATERMARK
from trionet.protocol.api_keys import LIST_OFFSETS
from trionet.testing import MemoryNetwork

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


async def fill(broker: Broker, admin: Admin) -> None:
    await admin.create_topics([NewTopic("a", 2)])
    async with trionet.open_producer(broker.bootstrap_servers) as producer:
        for time in (1000, 3000, 2000):
            await producer.send("a", b"v", partition=0, timestamp=time)


async def test_offsets_are_found_by_their_place_and_by_time(broker: Broker, admin: Admin) -> None:
    await fill(broker, admin)

    async def offset(spec: OffsetSpec | int) -> ListedOffset:
        return (await admin.list_offsets({A0: spec})).checked()[A0]

    assert 0 == (await offset(OffsetSpec.EARLIEST)).offset
    assert 3 == (await offset(OffsetSpec.LATEST)).offset
    assert ListedOffset(1, 3000, 0) == await offset(OffsetSpec.MAX_TIMESTAMP)
    assert ListedOffset(1, 3000, 0) == await offset(1500)
    assert (await offset(9000)).offset is None


async def test_partitions_are_asked_for_at_their_leaders() -> None:
    async with (
        trionet.open_broker(brokers=3) as broker,
        trionet.open_admin(broker.bootstrap_servers) as admin,
    ):
        await admin.create_topics([NewTopic("a", 6, 1)])
        wanted = {TopicPartition("a", n): OffsetSpec.LATEST for n in range(6)}

        found = (await admin.list_offsets(wanted, read_committed=True)).checked()

        assert [0] * 6 == [each.offset for each in found.values()]
        assert list(wanted) == list(found)


async def test_unknown_partition_is_an_error_of_its_own(broker: Broker) -> None:
    # One attempt: a topic that is unknown may be a new one, and is asked for again.
    async with trionet.open_admin(broker.bootstrap_servers, retries=0) as admin:
        await admin.create_topics(["a"])

        found = await admin.list_offsets({A0: OffsetSpec.LATEST, A1: OffsetSpec.LATEST})

    assert "UNKNOWN_TOPIC_OR_PARTITION" == code_of(found[A1])
    assert [A1] == list(found.errors)


async def test_records_are_deleted(broker: Broker, admin: Admin) -> None:
    await fill(broker, admin)

    assert {A0: 2, A1: 0} == await admin.delete_records({A0: 2, A1: HIGH_WATERMARK})
    assert 2 == (await admin.list_offsets({A0: OffsetSpec.EARLIEST})).checked()[A0].offset
    beyond = await admin.delete_records({A0: 9})
    assert "OFFSET_OUT_OF_RANGE" == code_of(beyond[A0])


async def test_broker_without_remote_storage_has_no_such_offset(
    broker: Broker, admin: Admin
) -> None:
    await fill(broker, admin)

    found = (await admin.list_offsets({A0: OffsetSpec.LATEST_TIERED})).checked()

    assert found[A0].offset is None


async def test_unknown_spec_is_refused(admin: Admin) -> None:
    with pytest.raises(ValueError, match="-7"):
        await admin.list_offsets({A0: -7})


async def test_spec_that_the_broker_is_too_old_for_fails_alone(
    network: MemoryNetwork, node: ScriptedNode, autojump_clock: MockClock
) -> None:
    node.ranges[LIST_OFFSETS] = (1, 8)
    node.replies["Metadata"] = leading(node, 1, 1, 1)
    node.replies["ListOffsets"] = offset_of(7)
    wanted: dict[TopicPartition, OffsetSpec | int] = {
        A0: OffsetSpec.LATEST_TIERED,
        A1: OffsetSpec.MAX_TIMESTAMP,
        TopicPartition("a", 2): OffsetSpec.EARLIEST_PENDING_UPLOAD,
    }
    async with trionet.open_admin(node.address, network=network) as admin:
        found = await admin.list_offsets(wanted)
        with pytest.raises(UnsupportedVersionError):
            await admin.list_offsets({A0: OffsetSpec.LATEST_TIERED})

    assert list(wanted) == list(found)
    assert [UnsupportedVersionError] * 2 == [type(each) for each in found.errors.values()]
    assert ListedOffset(7, -1, -1) == found[A1]


async def test_what_is_no_spec_is_refused_and_says_what_is_one(admin: Admin) -> None:
    wanted: Any = {A0: "latest"}
    with pytest.raises(TypeError, match="expected OffsetSpec or int, not 'latest'"):
        await admin.list_offsets(wanted)
