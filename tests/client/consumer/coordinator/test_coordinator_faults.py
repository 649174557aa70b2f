"""A group whose coordinator refuses, moves, hangs or is lost."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from support.coordinator_members import COOPERATIVE, open_member
from trionet import Broker
from trionet.client._topic_partition import OffsetAndMetadata, TopicPartition
from trionet.client.consumer.records._chunk import FetchPosition
from trionet.errors import ApiError, CommitFailedError, FencedInstanceIdError
from trionet.protocol import error_codes
from trionet.testing import BrokerControl, MemoryNetwork

PASSING = [
    ("FindCoordinator", "COORDINATOR_NOT_AVAILABLE"),
    ("JoinGroup", "COORDINATOR_LOAD_IN_PROGRESS"),
    ("JoinGroup", "NOT_COORDINATOR"),
    ("JoinGroup", "UNKNOWN_MEMBER_ID"),
    ("JoinGroup", "REBALANCE_IN_PROGRESS"),
    ("SyncGroup", "NOT_COORDINATOR"),
    ("SyncGroup", "COORDINATOR_NOT_AVAILABLE"),
    ("SyncGroup", "REBALANCE_IN_PROGRESS"),
    ("SyncGroup", "UNKNOWN_MEMBER_ID"),
    ("SyncGroup", "ILLEGAL_GENERATION"),
    ("OffsetFetch", "NOT_COORDINATOR"),
    ("OffsetFetch", "COORDINATOR_LOAD_IN_PROGRESS"),
]


@pytest.mark.parametrize(("api", "error"), PASSING)
async def test_a_member_gets_in_after_what_passes(
    autojump_clock: MockClock,
    network: MemoryNetwork,
    broker: Broker,
    kit: BrokerControl,
    api: str,
    error: str,
) -> None:
    fault = kit.faults.fail(api, error, times=2)
    async with open_member(broker, network) as member:
        await member.read(
            lambda: bool(member.has and not member.subscription.assignment.initializing())
        )

        assert (2, [0, 1, 2, 3]) == (fault.hits, member.has)


@pytest.mark.parametrize("api", ["FindCoordinator", "JoinGroup", "SyncGroup", "OffsetFetch"])
@pytest.mark.parametrize("executed", [False, True])
async def test_a_member_gets_in_after_a_lost_connection(
    autojump_clock: MockClock,
    network: MemoryNetwork,
    broker: Broker,
    kit: BrokerControl,
    api: str,
    executed: bool,
) -> None:
    fault = kit.faults.close(api, executed=executed)
    async with open_member(broker, network) as member:
        await member.read(
            lambda: bool(member.has and not member.subscription.assignment.initializing())
        )

        assert (1, [0, 1, 2, 3]) == (fault.hits, member.has)


@pytest.mark.parametrize(
    ("api", "error"),
    [
        ("FindCoordinator", "GROUP_AUTHORIZATION_FAILED"),
        ("JoinGroup", "GROUP_AUTHORIZATION_FAILED"),
        ("JoinGroup", "INCONSISTENT_GROUP_PROTOCOL"),
        ("JoinGroup", "GROUP_MAX_SIZE_REACHED"),
        ("SyncGroup", "GROUP_AUTHORIZATION_FAILED"),
        ("OffsetFetch", "GROUP_AUTHORIZATION_FAILED"),
    ],
)
async def test_what_stays_refused_is_raised_where_the_user_asks(
    autojump_clock: MockClock,
    network: MemoryNetwork,
    broker: Broker,
    kit: BrokerControl,
    api: str,
    error: str,
) -> None:
    kit.faults.fail(api, error)
    async with open_member(broker, network) as member:
        with pytest.raises(ApiError, match=error) as caught:
            await member.read_on()
        assert error == error_codes.name_of(caught.value.error_code)

        await member.read(
            lambda: bool(member.has and not member.subscription.assignment.initializing())
        )

        assert [0, 1, 2, 3] == member.has  # whoever asks again tries again


@pytest.mark.parametrize("error", ["UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION"])
async def test_a_member_that_was_thrown_out_hears_of_the_loss_and_joins_anew(
    autojump_clock: MockClock,
    network: MemoryNetwork,
    broker: Broker,
    kit: BrokerControl,
    error: str,
) -> None:
    async with open_member(broker, network) as member:
        await member.read(lambda: bool(member.has))
        kit.faults.fail("Heartbeat", error)
        await member.read(lambda: member.told[1:] != [] and bool(member.has))

        assert [("lost", [0, 1, 2, 3]), ("assigned", [0, 1, 2, 3])] == member.told[1:]


@pytest.mark.parametrize("finder", ["the commit before the join", "a heartbeat in flight"])
async def test_a_loss_that_is_found_while_a_join_is_prepared_is_reported_before_the_join(
    autojump_clock: MockClock,
    network: MemoryNetwork,
    broker: Broker,
    kit: BrokerControl,
    finder: str,
) -> None:
    """Others may have owned the partitions: their positions and commits would be stale."""
    async with open_member(broker, network, assignors=COOPERATIVE) as member:
        await member.read(
            lambda: bool(member.has and not member.subscription.assignment.initializing())
        )
        if finder == "a heartbeat in flight":
            kit.faults.fail("Heartbeat", "UNKNOWN_MEMBER_ID", delay=1)
            with trio.move_on_after(3.5):
                await member.read_on()
        else:
            member.subscription.assignment.seek(TopicPartition("t", 0), FetchPosition(7))
            kit.faults.fail("OffsetCommit", "UNKNOWN_MEMBER_ID")
        member.coordinator.rejoin("as the program says")
        await member.read(lambda: len(member.told) > 2)

        assert [("lost", [0, 1, 2, 3]), ("assigned", [0, 1, 2, 3])] == member.told[1:]


async def test_a_loss_that_a_commit_finds_wakes_the_task_that_waits_for_records(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker, kit: BrokerControl
) -> None:
    """Nothing else would, if all partitions are paused; and there are no more heartbeats."""
    async with open_member(broker, network) as member, trio.open_nursery() as nursery:
        await member.read(lambda: bool(member.has))
        nursery.start_soon(member.read_on)
        kit.faults.fail("OffsetCommit", "UNKNOWN_MEMBER_ID")
        with pytest.raises(CommitFailedError):
            await member.coordinator.commit({TopicPartition("t", 0): OffsetAndMetadata(3)})
        await trio.sleep(60)

        assert [("lost", [0, 1, 2, 3]), ("assigned", [0, 1, 2, 3])] == member.told[1:]
        nursery.cancel_scope.cancel()


async def test_a_slow_member_gives_up_its_partitions_before_its_coordinator_responds(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker, kit: BrokerControl
) -> None:
    """The others get them with the request, whatever becomes of the response."""
    async with open_member(broker, network, max_poll_interval_seconds=10) as member:
        await member.read(lambda: bool(member.has))
        kit.faults.swallow("LeaveGroup", executed=True)
        await trio.sleep(12)
        assert [] == kit.group("readers").members
        await member.ask()

        assert [("lost", [0, 1, 2, 3])] == member.told[1:]
        assert [] == member.has


@pytest.mark.parametrize("error", ["NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE"])
async def test_a_coordinator_that_moves_is_looked_for_and_nothing_is_given_up(
    autojump_clock: MockClock,
    network: MemoryNetwork,
    broker: Broker,
    kit: BrokerControl,
    error: str,
) -> None:
    async with open_member(broker, network) as member:
        await member.read(lambda: bool(member.has))
        kit.forget_requests()
        kit.faults.fail("Heartbeat", error)
        with trio.move_on_after(10):
            await member.read_on()

        assert [("assigned", [0, 1, 2, 3])] == member.told
        assert "FindCoordinator" in {each.api for each in kit.requests()}


async def test_a_coordinator_that_hangs_is_given_up_before_the_session_ends(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker, kit: BrokerControl
) -> None:
    async with open_member(
        broker, network, session_timeout_seconds=45, request_timeout_seconds=30
    ) as member:
        await member.read(lambda: bool(member.has))
        fault = kit.faults.swallow("Heartbeat")
        with trio.move_on_after(100):
            await member.read_on()

        assert (1, 1) == (fault.hits, member.coordinator.group_metadata.generation)


async def test_whose_instance_id_another_has_can_do_no_more(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker
) -> None:
    async with open_member(broker, network, instance_id="one") as first:
        await first.read(lambda: bool(first.has))
        async with open_member(broker, network, instance_id="one") as second:
            await second.read(lambda: bool(second.has))
            for _ in range(2):
                with pytest.raises(FencedInstanceIdError, match="another consumer has joined"):
                    await first.read_on()
            await second.read(lambda: True)

            assert ([0, 1, 2, 3], 1) == (second.has, len(second.told))


async def test_nothing_is_done_for_the_group_once_another_has_the_instance_id(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker, kit: BrokerControl
) -> None:
    async with open_member(broker, network, instance_id="one", auto_commit_seconds=5) as member:
        await member.read(lambda: bool(member.has))
        member.subscription.assignment.seek(TopicPartition("t", 0), FetchPosition(3, 0))
        kit.faults.fail("Heartbeat", "FENCED_INSTANCE_ID")
        await trio.sleep(4)
        kit.forget_requests()
        await trio.sleep(60)

        assert set() == {each.api for each in kit.requests()} - {"Metadata"}
        assert not any(each.is_fetchable for each in member.subscription.assignment.states.values())
        with pytest.raises(FencedInstanceIdError):
            await member.coordinator.commit({TopicPartition("t", 0): OffsetAndMetadata(3)})
        for _ in range(2):
            with pytest.raises(FencedInstanceIdError):
                await member.ask()
    assert ("lost", [0, 1, 2, 3]) == member.told[-1]


@pytest.mark.parametrize("api", ["JoinGroup", "SyncGroup"])
@pytest.mark.parametrize("error", ["UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION"])
async def test_what_a_cooperative_member_kept_is_lost_if_it_is_thrown_out_while_it_joins(
    autojump_clock: MockClock,
    network: MemoryNetwork,
    broker: Broker,
    kit: BrokerControl,
    api: str,
    error: str,
) -> None:
    """Else what it has read before would be committed in a generation that it was not read in."""
    kept = FetchPosition(3, 0)
    async with open_member(broker, network, assignors=COOPERATIVE) as member:
        await member.read(lambda: bool(member.has))
        member.subscription.assignment.seek(TopicPartition("t", 0), kept)
        fault = kit.faults.fail(api, error)
        member.coordinator.rejoin("a test wants it")
        await member.read(lambda: fault.hits == 1 and member.told[1:] != [] and bool(member.has))

        assert [("lost", [0, 1, 2, 3]), ("assigned", [0, 1, 2, 3])] == member.told[1:]
        # What was committed before it joined may be there already, with the same offset.
        assert kept is not member.subscription.assignment.position(TopicPartition("t", 0))


async def test_an_error_of_the_members_own_is_raised_where_the_user_asks(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker
) -> None:
    class Broken:
        name = "broken"
        protocols = frozenset({0})

        def user_data(self, *_: object) -> None:
            raise ZeroDivisionError

    async with open_member(broker, network, assignors=(Broken(),)) as member:
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                await member.read_on()
