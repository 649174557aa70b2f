"""What a consumer does when leaders move, logs are cut, and brokers refuse; in virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest
import trio
from trio.testing import MockClock

from support.coordinator_members import make_topic
from support.scripted_logs import Logs
from support.scripted_node import Hangup, Seen
from trionet import open_broker
from trionet.client._network_settings import MetadataTimes
from trionet.client._topic_partition import TopicPartition
from trionet.client.consumer._consumer import Consumer
from trionet.client.consumer._open_consumer import open_consumer
from trionet.client.consumer._settings import ConsumerSettings
from trionet.client.consumer.fetch._settings import FetchSettings
from trionet.client.consumer.state._reset_strategy import EARLIEST, ResetStrategy
from trionet.errors import ApiError, CorruptRecordError, LogTruncationError
from trionet.protocol import error_codes
from trionet.protocol.messages.fetch import PartitionData
from trionet.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from trionet.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from trionet.testing import MemoryNetwork, control

# Parsed, as settings are: equal to the constant, but not the same object.
WITHOUT_RESET = ResetStrategy.parse("none")
T0 = TopicPartition("t", 0)


@asynccontextmanager
async def reading(
    network: MemoryNetwork,
    logs: Logs,
    reset: ResetStrategy = EARLIEST,
    fetch: FetchSettings = FetchSettings(),  # noqa: B008  # it never changes
) -> AsyncIterator[Consumer]:
    settings = ConsumerSettings(reset=reset, fetch=fetch)
    async with logs.listening(), open_consumer(logs.address, settings, network=network) as consumer:
        consumer.assign([T0])
        yield consumer


async def update_metadata(consumer: Consumer) -> None:
    """Have the consumer ask for metadata, as it does for a topic that is new to it."""
    with trio.move_on_after(1):
        await consumer.partitions_of(f"new at {trio.current_time()}")


async def values(consumer: Consumer, count: int) -> list[bytes | None]:
    with trio.fail_after(20):  # less than the time after which a silent node is given up
        return [(await anext(consumer)).value for _ in range(count)]


def refused(error_code: int) -> PartitionData:
    return PartitionData(error_code=error_code)


def cut(network: MemoryNetwork) -> Logs:
    """Three records, of which the leader of a second epoch has only the first."""
    logs = Logs(network)
    logs.write(b"a", b"b", b"c")
    logs.epoch_ends = {1: 1}
    logs.leader = 1, 2
    return logs


# Leaders.


@pytest.mark.parametrize("tells_leaders", [False, True])
async def test_new_leader_is_asked_whether_it_has_what_was_read(
    network: MemoryNetwork, autojump_clock: MockClock, tells_leaders: bool
) -> None:
    """KIP-320; who says that it is not the leader may say who is (KIP-951)."""
    logs = Logs(network, nodes=2)
    logs.tells_leaders = tells_leaders
    logs.write(b"a", b"b")
    async with reading(network, logs) as consumer:
        assert [b"a", b"b"] == await values(consumer, 2)
        logs.leader = 2, 2
        logs.write(b"c")
        described = logs.asked("Metadata")
        logs.nodes[1].replies["Fetch"] = logs.nodes[2].replies["Fetch"]
        consumer.seek(T0, 2, leader_epoch=1)
        logs.answers = [refused(error_codes.NOT_LEADER_OR_FOLLOWER)]
        assert [b"c"] == await values(consumer, 1)

        assert 1 <= logs.asked("OffsetForLeaderEpoch")
        assert (2, 2) == logs.fetches[-1] or (2, 3) == logs.fetches[-1]
        if tells_leaders:
            assert described == logs.asked("Metadata")


async def test_leader_that_was_replaced_does_not_reset_a_position_of_a_newer_epoch(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    """It does not know yet; a committed offset may be newer than the metadata of a broker."""
    logs = Logs(network, nodes=2)
    logs.write(b"a", b"b", b"c")

    def replace() -> None:
        logs.leader = 2, 2

    async with reading(network, logs) as consumer, trio.open_nursery() as nursery:
        consumer.seek(T0, 2, leader_epoch=2)
        nursery.start_soon(after_a_while, replace)

        assert [b"c"] == await values(consumer, 1)
        assert 2 <= logs.asked("OffsetForLeaderEpoch")
        assert 0 == logs.asked("ListOffsets")


async def after_a_while(act: Callable[[], None]) -> None:
    await trio.sleep(1)
    act()


async def test_position_of_a_topic_that_was_created_anew_is_reset_in_the_end(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    """Its epochs begin anew, so that the leader's is no sign of a leader that was replaced."""
    logs = Logs(network)
    logs.write(b"a")
    async with reading(network, logs) as consumer:
        consumer.seek(T0, 7, leader_epoch=5)

        assert [b"a"] == await values(consumer, 1)


async def test_log_that_was_cut_is_read_on_where_it_was(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    logs = cut(network)
    async with reading(network, logs) as consumer:
        consumer.seek(T0, 3, leader_epoch=1)

        assert [b"b", b"c"] == await values(consumer, 2)


async def test_with_none_a_log_that_was_cut_is_an_error(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    logs = cut(network)
    async with reading(network, logs, WITHOUT_RESET) as consumer:
        consumer.seek(T0, 3, leader_epoch=1)
        with pytest.raises(LogTruncationError, match="truncated at offset 1") as caught:
            await anext(consumer)
        assert (3, 1) == (caught.value.offset, caught.value.divergent_offset)
        consumer.seek(T0, 1)

        assert [b"b"] == await values(consumer, 1)


async def test_a_leader_that_follows_during_a_validation_is_asked_itself(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    """What the leader before it responds later counts for nothing."""
    logs = Logs(network, nodes=3)
    logs.write(b"a", b"b", b"c")
    held: list[Seen] = []
    logs.nodes[2].replies["OffsetForLeaderEpoch"] = held.append
    async with reading(network, logs) as consumer:
        assert [b"a", b"b", b"c"] == await values(consumer, 3)
        logs.leader = 2, 2
        await update_metadata(consumer)
        [asked] = held
        logs.leader, logs.epoch_ends = (3, 3), {1: 1}
        await update_metadata(consumer)
        has_all = EpochEndOffset(leader_epoch=1, end_offset=3)
        topic = OffsetForLeaderTopicResult(topic="t", partitions=[has_all])
        await asked.respond(OffsetForLeaderEpochResponse(topics=[topic]))

        assert [b"b", b"c"] == await values(consumer, 2)


async def test_offsets_are_asked_of_the_leader_that_follows(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    logs = Logs(network, nodes=2)
    logs.write(b"a", b"b")
    held: list[Seen] = []
    logs.nodes[1].replies["ListOffsets"] = held.append
    async with reading(network, logs) as consumer:
        await update_metadata(consumer)
        [asked] = held
        logs.leader = 2, 2
        await update_metadata(consumer)
        end = ListOffsetsPartitionResponse(offset=2, leader_epoch=1)
        topic = ListOffsetsTopicResponse(name="t", partitions=[end])
        await asked.respond(ListOffsetsResponse(topics=[topic]))

        assert [b"a", b"b"] == await values(consumer, 2)


async def test_a_topic_that_was_created_anew_is_read_from_its_start(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    """Its epochs count from the start, too, so the new leader's is lower."""
    logs = Logs(network)
    logs.leader = 1, 5
    logs.write(*[b"old"] * 3)
    async with reading(network, logs) as consumer:
        await values(consumer, 3)
        consumer.pause(T0)
        logs.create_anew(leader=(1, 0))
        logs.write(*[b"new"] * 6)
        await trio.sleep(MetadataTimes().max_age_seconds + 1)
        consumer.resume(T0)

        assert [b"new"] * 6 == await values(consumer, 6)


async def test_replica_nearby_is_read_until_it_is_old_news(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    """KIP-392; after ``metadata.max.age.ms`` the leader is asked again."""
    logs = Logs(network, nodes=2)
    logs.write(b"a")
    logs.answers = [PartitionData(preferred_read_replica=2)]
    async with reading(network, logs, fetch=FetchSettings(rack="here")) as consumer:
        logs.leader = 1, 1
        assert [b"a"] == await values(consumer, 1)

        assert [(1, 0), (2, 0)] == logs.fetches[:2]
        assert "here" == logs.nodes[2].last("Fetch").body.rack_id
        with trio.move_on_after(400):
            await anext(consumer)
        assert 1 == logs.fetches[-1][0]


async def test_follower_that_lacks_an_offset_is_left_for_the_leader(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    logs = Logs(network, nodes=2)
    logs.write(b"a")
    logs.answers = [
        PartitionData(preferred_read_replica=2),
        refused(error_codes.OFFSET_OUT_OF_RANGE),
    ]
    async with reading(network, logs, WITHOUT_RESET) as consumer:
        consumer.seek(T0, 0)

        assert [b"a"] == await values(consumer, 1)
        assert [(1, 0), (2, 0), (1, 0)] == logs.fetches[:3]


@pytest.mark.parametrize(
    "error_code",
    [
        error_codes.NOT_LEADER_OR_FOLLOWER,
        error_codes.UNKNOWN_TOPIC_OR_PARTITION,
        error_codes.REPLICA_NOT_AVAILABLE,
        error_codes.KAFKA_STORAGE_ERROR,
    ],
)
async def test_follower_that_has_no_replica_is_left_for_the_leader(
    network: MemoryNetwork, autojump_clock: MockClock, error_code: int
) -> None:
    """The leader's metadata are as they were, so that no update would say so."""
    logs = Logs(network, nodes=2)
    logs.write(b"a")
    logs.answers = [PartitionData(preferred_read_replica=2), refused(error_code)]
    async with reading(network, logs) as consumer:
        consumer.seek(T0, 0)

        assert [b"a"] == await values(consumer, 1)
        assert [(1, 0), (2, 0), (1, 0)] == logs.fetches[:3]


# Refusals.


@pytest.mark.parametrize(
    "error_code",
    [
        error_codes.NOT_LEADER_OR_FOLLOWER,
        error_codes.FENCED_LEADER_EPOCH,
        error_codes.UNKNOWN_LEADER_EPOCH,
        error_codes.OFFSET_NOT_AVAILABLE,
        error_codes.UNKNOWN_TOPIC_OR_PARTITION,
        error_codes.KAFKA_STORAGE_ERROR,
    ],
)
async def test_what_passes_is_tried_again_after_a_wait(
    network: MemoryNetwork, autojump_clock: MockClock, error_code: int
) -> None:
    logs = Logs(network)
    logs.write(b"a")
    logs.answers = [*[refused(error_code)] * 3]
    async with reading(network, logs) as consumer:
        began = trio.current_time()

        assert [b"a"] == await values(consumer, 1)
        assert [(1, 0)] * 4 == logs.fetches[:4]
        assert 3 * 0.08 <= trio.current_time() - began < 3


async def test_records_that_are_damaged_in_the_log_are_an_error_after_those_before_them(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    """The broker would return the same code to each further request."""
    logs = Logs(network)
    logs.write(b"a")
    logs.answers = [None, *[refused(error_codes.CORRUPT_MESSAGE)] * 50]
    async with reading(network, logs) as consumer:
        with trio.fail_after(20):
            await consumer.until_connected()
            await trio.sleep(1)
            assert b"a" == (await anext(consumer)).value
            for _ in range(2):
                with pytest.raises(CorruptRecordError, match=r"t-0 at offset 1: .*CORRUPT_MESSAGE"):
                    await anext(consumer)
            logs.end = 2
            logs.write(b"c")
            logs.answers.clear()
            consumer.seek(T0, 2)
            assert b"c" == (await anext(consumer)).value


async def test_a_limit_of_no_bytes_is_one_batch_a_response(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    """KIP-74: a response has a batch, however large that is."""
    logs = Logs(network)
    logs.write(b"a", b"b")
    limits = FetchSettings(bytes_max=0, partition_bytes_max=0)
    async with reading(network, logs, fetch=limits) as consumer:
        assert [b"a", b"b"] == await values(consumer, 2)


def grow(times: list[float]) -> bool:
    """Whether the waits between these are 0.1, 0.2, 0.4, 0.8, 1, 1 s, blurred by a fifth."""
    waits = [after - before for before, after in pairwise(times)]
    wanted = [0.1, 0.2, 0.4, 0.8, 1, 1]
    return all(
        0.8 * right <= found <= 1.2 * right + 0.01
        for found, right in zip(waits, wanted, strict=False)
    )


async def test_each_further_refusal_of_a_partition_makes_the_wait_longer(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    """KIP-580; what came between two refusals ends the row."""
    logs = Logs(network)
    logs.write(b"a")
    passing = refused(error_codes.OFFSET_NOT_AVAILABLE)
    logs.answers = [*[passing] * 6, None, *[passing] * 6]
    async with reading(network, logs) as consumer:
        await values(consumer, 1)
        assert 6 == len(logs.fetch_times[1:7])
        assert grow(logs.fetch_times[:7])

        await trio.sleep(20)
        assert 6 == len(logs.fetch_times[8:14])
        assert grow(logs.fetch_times[7:14])


@pytest.mark.parametrize("what", ["list", "epoch"])
async def test_each_further_refusal_of_an_offset_or_epoch_makes_the_wait_longer(
    network: MemoryNetwork, autojump_clock: MockClock, what: str
) -> None:
    """KIP-580."""
    logs = Logs(network)
    logs.write(b"a", b"b")
    setattr(logs, f"{what}_errors", [error_codes.OFFSET_NOT_AVAILABLE] * 6)
    async with reading(network, logs) as consumer:
        if what == "epoch":
            logs.leader = 1, 2
            consumer.seek(T0, 1, leader_epoch=1)
        await values(consumer, 1)

    times = getattr(logs, f"{what}_times")
    assert 7 == len(times)
    assert grow(times)


async def test_refusal_is_reported_once_and_the_consumer_goes_on(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    logs = Logs(network)
    logs.write(b"a")
    logs.answers = [*[refused(error_codes.TOPIC_AUTHORIZATION_FAILED)] * 2]
    async with reading(network, logs) as consumer:
        for _ in range(2):
            with pytest.raises(ApiError, match="t-0: TOPIC_AUTHORIZATION_FAILED"):
                await anext(consumer)

        assert [b"a"] == await values(consumer, 1)


async def test_refusal_that_was_not_reported_is_not_asked_for_again(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    logs = Logs(network)
    logs.write(b"a")
    logs.answers = [*[refused(error_codes.TOPIC_AUTHORIZATION_FAILED)] * 1000]
    async with reading(network, logs) as consumer:
        await trio.sleep(60)
        assert 1 == len(logs.fetches)
        with pytest.raises(ApiError):
            await anext(consumer)


async def test_lost_connection_repeats_the_fetch(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    logs = Logs(network)
    logs.write(b"a")
    logs.answers = [Hangup(), Hangup()]
    async with reading(network, logs) as consumer:
        assert [b"a"] == await values(consumer, 1)

        assert [(1, 0)] * 3 == logs.fetches[:3]


async def test_offsets_are_asked_for_until_they_are_known(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    logs = Logs(network)
    logs.write(b"a")
    logs.list_errors = [error_codes.NOT_LEADER_OR_FOLLOWER, error_codes.LEADER_NOT_AVAILABLE]
    async with reading(network, logs) as consumer:
        assert [b"a"] == await values(consumer, 1)
        assert 3 == logs.asked("ListOffsets")


# Ahead.


async def test_so_much_is_fetched_ahead_and_no_more(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    logs = Logs(network)
    logs.write(*[b"x" * 100] * 10)
    small = FetchSettings(partition_bytes_max=300)
    async with reading(network, logs, fetch=small) as consumer:
        await trio.sleep(60)
        assert [(1, 0)] == logs.fetches, "what is there is more than enough"
        await values(consumer, 10)
        logs.write(b"y")

        assert [b"y"] == await values(consumer, 1)
        assert (1, 10) in logs.fetches


async def test_what_was_fetched_ahead_is_handed_out_before_the_position_is_reset(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    """Retention may take what is behind it meanwhile."""
    logs = Logs(network)
    logs.write(b"a", b"b")
    logs.answers = [None, *[refused(error_codes.OFFSET_OUT_OF_RANGE)] * 100]
    async with reading(network, logs) as consumer:
        await trio.sleep(5)
        assert (1, 2) == logs.fetches[-1]
        assert 1 == logs.asked("ListOffsets")

        assert [b"a", b"b"] == await values(consumer, 2)
        with trio.move_on_after(5):
            await anext(consumer)
        assert 1 < logs.asked("ListOffsets"), "now it is reset"


async def test_many_seconds_without_a_record_cost_few_fetches(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    logs = Logs(network)
    async with reading(network, logs) as consumer:
        with trio.move_on_after(20):
            await anext(consumer)

        assert 1 == len(logs.fetches)


@pytest.mark.parametrize(
    "error",
    [
        "FETCH_SESSION_ID_NOT_FOUND",
        "INVALID_FETCH_SESSION_EPOCH",
        "FETCH_SESSION_TOPIC_ID_ERROR",
    ],
)
async def test_a_session_that_is_refused_again_and_again_is_begun_after_waits(
    network: MemoryNetwork, autojump_clock: MockClock, error: str
) -> None:
    settings = ConsumerSettings(reset=EARLIEST)
    async with open_broker(network=network) as broker:
        await make_topic(broker, "t", 1, network)
        fault = control(broker).faults.fail("Fetch", error, times=1000)
        async with open_consumer(broker.bootstrap_servers, settings, network=network) as consumer:
            consumer.assign([T0])
            with trio.move_on_after(10):
                await anext(consumer)

        assert 10 < fault.hits < 150
