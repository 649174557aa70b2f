"""What a consumer looks up for its user, beside what it reads."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from support.scripted_logs import Logs
from trionet import ApiError, TopicPartition, open_broker, open_consumer, open_reader
from trionet.client.consumer._consumer import Consumer
from trionet.errors import CallTimedOutError, WireFormatError
from trionet.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from trionet.testing import MemoryNetwork, control

#: Requests whose outcome a scripted broker does not know.
QUIET: dict[str, Any] = {"enable_metrics_push": False}
#: Offsets that no log has.
IMPOSSIBLE = [-(2**63), -500, -2, 2**63 - 1]


async def read(consumer: Consumer) -> None:
    async for _ in consumer:
        pass


async def test_look_ups_beside_a_rebalance_get_their_metadata_at_once(
    autojump_clock: MockClock,
) -> None:
    """Whichever step of the rebalance comes between the call and the Metadata request."""
    network = MemoryNetwork()
    async with open_broker({"group.initial.rebalance.delay.ms": "0"}, network=network) as broker:
        kit = control(broker)
        for name in ["t", *(f"o{number}" for number in range(60))]:
            await kit.seed(name, [b"a"])
        async with (
            open_consumer(
                broker.bootstrap_servers,
                topics="t",
                group_id="g",
                auto_offset_reset="earliest",
                network=network,
            ) as consumer,
            trio.open_nursery() as nursery,
        ):
            await anext(consumer)
            nursery.start_soon(read, consumer)
            for number in range(60):
                await trio.sleep(7)
                consumer.rejoin("a test asks for it")
                for _ in range(number % 6):
                    await trio.lowlevel.checkpoint()
                asked_at = trio.current_time()
                assert [0] == await consumer.partitions_of(f"o{number}")
                assert trio.current_time() < asked_at + 1
            nursery.cancel_scope.cancel()


async def test_error_of_a_topic_that_is_looked_up_is_not_raised_to_the_reader(
    autojump_clock: MockClock,
) -> None:
    network = MemoryNetwork()
    async with open_broker(network=network) as broker:
        await control(broker).seed("t", [b"a"])
        async with open_consumer(
            broker.bootstrap_servers, auto_offset_reset="earliest", network=network
        ) as consumer:
            consumer.assign([TopicPartition("t", 0)])
            with pytest.raises(ApiError, match="INVALID_TOPIC_EXCEPTION"):
                await consumer.partitions_of("not a topic's name!")

            assert b"a" == (await anext(consumer)).value
            with trio.move_on_after(400):
                await anext(consumer)


async def test_error_of_a_topic_that_is_no_longer_assigned_is_not_raised_again(
    autojump_clock: MockClock,
) -> None:
    network = MemoryNetwork()
    async with open_broker(network=network) as broker:
        kit = control(broker)
        await kit.seed("t", [b"a"])
        await kit.seed("u", [b"b"])
        async with open_consumer(
            broker.bootstrap_servers, auto_offset_reset="earliest", network=network
        ) as consumer:
            t = TopicPartition("t", 0)
            consumer.assign([TopicPartition("not a topic's name!", 0), t])
            with pytest.raises(ApiError, match="INVALID_TOPIC_EXCEPTION"):
                await anext(consumer)
            consumer.assign([t])
            assert [0] == await consumer.partitions_of("u")

            assert b"a" == (await anext(consumer)).value


async def test_topic_that_was_looked_up_is_asked_for_only_when_it_is_looked_up_again(
    autojump_clock: MockClock,
) -> None:
    network = MemoryNetwork()
    async with open_broker({"auto.create.topics.enable": "false"}, network=network) as broker:
        kit = control(broker)
        await kit.seed("t", [b"a"])
        async with open_consumer(
            broker.bootstrap_servers, auto_offset_reset="earliest", network=network
        ) as consumer:
            consumer.assign([TopicPartition("t", 0)])
            await anext(consumer)
            assert [] == await consumer.partitions_of("u")
            await trio.sleep(2)  # the next request may already be on its way
            kit.forget_requests()
            await trio.sleep(60)
            assert [] == kit.requests("Metadata")

            await kit.seed("u", [b"b"])
            assert [0] == await consumer.partitions_of("u")


@pytest.mark.parametrize("offset", [*IMPOSSIBLE, -1])
async def test_look_up_that_returns_an_offset_that_no_log_has_is_an_error_of_ours(
    autojump_clock: MockClock, offset: int
) -> None:
    """Else seek() would be given it, which takes such a number for a mistake of the program's."""
    network = MemoryNetwork()
    logs = Logs(network)
    logs.write(b"a")
    async with logs.listening():
        logs.list_offsets = [offset]
        with pytest.raises(WireFormatError, match=r"the leader of t-0 returned (offset|no offset)"):
            async with open_reader(logs.address, "t", network=network, **QUIET):
                pass

        async with open_consumer(logs.address, network=network, **QUIET) as consumer:
            logs.list_offsets = [offset]
            with pytest.raises(WireFormatError, match=r"a log has|no log has"):
                await consumer.end_offsets([TopicPartition("t", 0)])
            assert {TopicPartition("t", 0): 1} == await consumer.end_offsets(
                [TopicPartition("t", 0)]
            )


@pytest.mark.parametrize("offset", IMPOSSIBLE)
async def test_reset_to_an_offset_that_no_log_has_is_tried_again(
    autojump_clock: MockClock, offset: int
) -> None:
    network = MemoryNetwork()
    logs = Logs(network)
    logs.write(b"a")
    logs.list_offsets = [offset]
    async with (
        logs.listening(),
        open_consumer(
            logs.address, auto_offset_reset="earliest", network=network, **QUIET
        ) as consumer,
    ):
        consumer.assign([TopicPartition("t", 0)])

        assert b"a" == (await anext(consumer)).value
        assert [(1, 0)] == logs.fetches[:1]
        assert 2 == len(logs.list_times)


@pytest.mark.parametrize("offset", IMPOSSIBLE)
async def test_position_is_validated_again_if_an_epoch_ends_at_an_offset_that_no_log_has(
    autojump_clock: MockClock, offset: int
) -> None:
    network = MemoryNetwork()
    logs = Logs(network)
    logs.write(b"a", b"b")
    logs.epoch_offsets = [offset]
    async with logs.listening(), open_consumer(logs.address, network=network, **QUIET) as consumer:
        consumer.assign([TopicPartition("t", 0)])
        consumer.seek(TopicPartition("t", 0), 1, leader_epoch=1)

        assert b"b" == (await anext(consumer)).value
        assert 2 == len(logs.epoch_times)


async def test_partitions_in_a_response_that_were_not_looked_up_count_for_nothing(
    autojump_clock: MockClock,
) -> None:
    network = MemoryNetwork()
    logs = Logs(network)
    names = [TopicPartition("t", 0)]
    others = [ListOffsetsPartitionResponse(partition_index=each) for each in (7, -5)]
    strange = ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=others)])
    [node] = logs.nodes.values()
    node.replies["ListOffsets"] = lambda _: strange
    async with logs.listening(), open_consumer(logs.address, network=network, **QUIET) as consumer:
        with pytest.raises(CallTimedOutError, match="could not look up the offsets of t-0"):
            await consumer.end_offsets(names)
