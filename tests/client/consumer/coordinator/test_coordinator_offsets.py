"""What a group commits, and where its members begin, on a real broker in virtual time."""

from __future__ import annotations

import attrs
import pytest
import trio
from trio.testing import MockClock

from support.coordinator_members import GROUP, GroupMember, open_member
from support.group_calls import COMMIT_BY_NAME, commit_request
from trionet import Broker
from trionet.client._topic_partition import OffsetAndMetadata, TopicPartition
from trionet.client.consumer.coordinator._commits import REPEAT_SECONDS
from trionet.client.consumer.coordinator._rebalance_steps import RebalanceCallbacks
from trionet.client.consumer.records._chunk import FetchPosition
from trionet.client.consumer.state._partition_state import FetchState
from trionet.errors import (
    ApiError,
    CommitFailedError,
    DisconnectedError,
    RebalanceInProgressError,
)
from trionet.protocol.messages.join_group import JoinGroupResponse
from trionet.protocol.messages.offset_commit import OffsetCommitRequest
from trionet.testing import BrokerControl, MemoryNetwork

T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)


def read_to(member: GroupMember, partition: TopicPartition, offset: int) -> None:
    """As if the user had finished with what is before an offset."""
    member.subscription.assignment.seek(partition, FetchPosition(offset, 0))


def committed(kit: BrokerControl, group: str = "readers") -> dict[tuple[str, int], int]:
    return dict(kit.group(group).offsets)


async def test_a_partition_goes_on_where_the_group_has_committed(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker
) -> None:
    async with open_member(broker, network) as member:
        await member.read(lambda: bool(member.has))
        await member.coordinator.commit({T0: OffsetAndMetadata(7, "note", 3)})
    async with open_member(broker, network) as member:
        await member.read(
            lambda: bool(member.has and not member.subscription.assignment.initializing())
        )
        states = {
            each: state.state for each, state in member.subscription.assignment.states.items()
        }

        assert FetchPosition(7, 3) == member.subscription.assignment.position(T0)
        assert FetchState.AWAIT_VALIDATION == states[T0]
        assert FetchState.AWAIT_RESET == states[T1]
        found = await member.coordinator.committed([T0, T1])
        assert {T0: OffsetAndMetadata(7, "note", 3), T1: None} == found


async def test_a_committed_offset_keeps_its_metadata_while_nothing_is_read(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker
) -> None:
    """Neither the regular commit of who goes on there, nor that at the end, replaces it."""
    for _ in range(2):
        async with open_member(broker, network, auto_commit_seconds=5) as member:
            await member.read(
                lambda: bool(member.has and not member.subscription.assignment.initializing())
            )
            await member.coordinator.commit({T0: OffsetAndMetadata(7, "note")})
    async with open_member(broker, network, auto_commit_seconds=5) as member:
        await member.read(
            lambda: bool(member.has and not member.subscription.assignment.initializing())
        )
        await trio.sleep(6)

        assert FetchPosition(7, -1) == member.subscription.assignment.position(T0)
        assert {T0: OffsetAndMetadata(7, "note")} == await member.coordinator.committed([T0])


async def test_a_seek_in_the_rebalance_callback_counts(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker
) -> None:
    async with open_member(broker, network) as member:
        member.coordinator.listeners.callbacks = RebalanceCallbacks(
            assigned=lambda _: read_to(member, T0, 5)
        )
        await member.read(
            lambda: bool(member.has and not member.subscription.assignment.initializing())
        )

        assert FetchPosition(5, 0) == member.subscription.assignment.position(T0)


async def test_what_is_finished_is_committed_each_interval(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker, kit: BrokerControl
) -> None:
    async with open_member(broker, network, auto_commit_seconds=5) as member:
        await member.read(lambda: bool(member.has))
        read_to(member, T0, 3)
        await trio.sleep(6)

        assert {("t", 0): 3} == committed(kit)


async def test_nothing_is_committed_by_itself_if_that_is_not_wished(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker, kit: BrokerControl
) -> None:
    async with open_member(broker, network, auto_commit_seconds=None) as member:
        await member.read(lambda: bool(member.has))
        read_to(member, T0, 3)
        await trio.sleep(60)

    assert {} == committed(kit)


async def test_what_has_not_changed_is_not_committed_again(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker, kit: BrokerControl
) -> None:
    async with open_member(broker, network, auto_commit_seconds=5) as member:
        await member.read(lambda: bool(member.has))
        read_to(member, T0, 3)
        await trio.sleep(20)
        seen = [each for each in kit.requests() if each.api == "OffsetCommit"]

        assert 1 == len(seen)


@pytest.mark.parametrize("progress", ["read", "committed", "found"])
async def test_an_offset_that_a_delayed_commit_set_back_is_committed_again(
    autojump_clock: MockClock,
    network: MemoryNetwork,
    broker: Broker,
    kit: BrokerControl,
    progress: str,
) -> None:
    """With its metadata. As that of a lost connection, the late commit is of the same member."""
    right = OffsetAndMetadata(111, "" if progress == "read" else "note", 0)
    if progress == "found":
        async with open_member(broker, network) as member:
            await member.read(lambda: bool(member.has))
            await member.coordinator.commit({T0: right})
    async with open_member(broker, network, auto_commit_seconds=5) as member:
        await member.read(
            lambda: bool(member.has and not member.subscription.assignment.initializing())
        )
        if progress != "found":
            read_to(member, T0, 111)
        if progress == "committed":
            await member.coordinator.commit({T0: right})
        await trio.sleep(6)
        late = commit_request(
            {"t": {0: 83}},
            group="readers",
            joined=JoinGroupResponse(
                generation_id=member.coordinator.group_metadata.generation,
                member_id=member.coordinator.group_metadata.member_id,
            ),
        )
        finder = member.coordinator._finder
        await finder.request(OffsetCommitRequest, lambda _: late, version_max=COMMIT_BY_NAME)
        assert 83 == committed(kit)["t", 0]
        await trio.sleep(REPEAT_SECONDS + 6)

        assert {T0: right} == await member.coordinator.committed([T0])


async def test_committed_offsets_are_read_while_the_group_rebalances(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker, kit: BrokerControl
) -> None:
    """A broker holds a JoinGroup until all have joined, with all that follows on its connection."""
    async with open_member(broker, network) as busy:
        await busy.read(lambda: bool(busy.has))
        await busy.coordinator.commit({T0: OffsetAndMetadata(7)})
        async with open_member(broker, network) as joining:
            await joining.ask()
            await trio.sleep(5)
            began = trio.current_time()
            found = await joining.coordinator.committed([T0])

            assert {T0: OffsetAndMetadata(7)} == found
            assert trio.current_time() - began < 1
            await busy.read(lambda: busy.coordinator.group_metadata.generation == 2)


async def test_a_read_of_committed_offsets_that_fails_leaves_a_join_in_flight(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker, kit: BrokerControl
) -> None:
    """The JoinGroup fails by itself if the coordinator is lost, and not only a connection to it."""
    async with open_member(broker, network) as busy:
        await busy.read(lambda: bool(busy.has))
        async with open_member(broker, network) as joining:
            await joining.ask()
            await trio.sleep(5)
            kit.forget_requests()
            fault = kit.faults.close("OffsetFetch")
            assert {T0: None} == await joining.coordinator.committed([T0])

            assert (1, []) == (fault.hits, kit.requests("JoinGroup"))
            assert [] == kit.requests("FindCoordinator")
            await busy.read(lambda: busy.coordinator.group_metadata.generation == 2)


async def test_what_another_has_committed_meanwhile_does_not_keep_from_committing_again(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker, kit: BrokerControl
) -> None:
    every = [0, 1, 2, 3]
    async with open_member(broker, network, auto_commit_seconds=5) as member:
        await member.read(lambda: bool(member.has))
        read_to(member, T0, 3)
        await trio.sleep(6)
        kit.expire_members("readers")
        async with open_member(broker, network, auto_commit_seconds=None) as other:
            await other.read(lambda: bool(other.has))
            await other.coordinator.commit({T0: OffsetAndMetadata(1)})
        await member.read(lambda: member.told[-2:] == [("lost", every), ("assigned", every)])
        read_to(member, T0, 3)
        await trio.sleep(6)

        assert {("t", 0): 3} == committed(kit)


async def test_what_is_finished_is_committed_before_partitions_are_given_up(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker, kit: BrokerControl
) -> None:
    seen: list[dict[tuple[str, int], int]] = []
    async with open_member(broker, network, auto_commit_seconds=600) as member:
        member.coordinator.listeners.callbacks = RebalanceCallbacks(
            revoked=lambda _: seen.append(committed(kit))
        )
        await member.read(lambda: bool(member.has))
        read_to(member, T0, 3)
        member.coordinator.rejoin("a test wants it")
        await member.read(lambda: member.coordinator.group_metadata.generation == 2)

        assert [{("t", 0): 3}] == seen


async def test_who_assigns_partitions_by_hand_may_commit_for_the_group(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker, kit: BrokerControl
) -> None:
    async with open_member(broker, network, topics=()) as member:
        member.subscription.assign([T0])
        member.coordinator.positions.find_soon()
        await member.read(lambda: not member.subscription.assignment.initializing())
        read_to(member, T0, 9)
        await member.coordinator.commit()

    assert {("t", 0): 9} == committed(kit)


async def test_who_is_not_a_member_any_more_cannot_commit(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker, kit: BrokerControl
) -> None:
    async with open_member(broker, network, auto_commit_seconds=None) as member:
        await member.read(lambda: bool(member.has))
        kit.expire_members("readers")
        with pytest.raises(CommitFailedError, match=r"max\.poll\.interval\.ms"):
            await member.coordinator.commit({T0: OffsetAndMetadata(1)})
        await member.read(lambda: ("lost", [0, 1, 2, 3]) in member.told)
        await member.read(lambda: bool(member.has))
        await member.coordinator.commit({T0: OffsetAndMetadata(1)})

    assert {("t", 0): 1} == committed(kit)


async def test_during_a_rebalance_nothing_is_committed(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker, kit: BrokerControl
) -> None:
    async with open_member(broker, network) as member:
        await member.read(lambda: bool(member.has))
        kit.faults.fail("OffsetCommit", "REBALANCE_IN_PROGRESS")
        with pytest.raises(RebalanceInProgressError, match="Request the next record"):
            await member.coordinator.commit({T0: OffsetAndMetadata(1)})
        await member.read(lambda: member.coordinator.group_metadata.generation == 2)
        await member.coordinator.commit({T0: OffsetAndMetadata(1)})

    assert {("t", 0): 1} == committed(kit)


@pytest.mark.parametrize(
    "error",
    [
        "NOT_COORDINATOR",
        "COORDINATOR_NOT_AVAILABLE",
        "COORDINATOR_LOAD_IN_PROGRESS",
        "REQUEST_TIMED_OUT",
        "UNKNOWN_TOPIC_OR_PARTITION",
    ],
)
async def test_a_commit_is_tried_again_after_what_passes(
    autojump_clock: MockClock,
    network: MemoryNetwork,
    broker: Broker,
    kit: BrokerControl,
    error: str,
) -> None:
    async with open_member(broker, network) as member:
        await member.read(lambda: bool(member.has))
        fault = kit.faults.fail("OffsetCommit", error, times=2)
        await member.coordinator.commit({T0: OffsetAndMetadata(1)})

        assert (2, {("t", 0): 1}) == (fault.hits, committed(kit))


async def test_a_commit_is_tried_again_on_another_connection(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker, kit: BrokerControl
) -> None:
    async with open_member(broker, network) as member:
        await member.read(lambda: bool(member.has))
        kit.faults.close("OffsetCommit")
        await member.coordinator.commit({T0: OffsetAndMetadata(1)})

        assert {("t", 0): 1} == committed(kit)


async def test_what_stays_refused_is_reported(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker, kit: BrokerControl
) -> None:
    async with open_member(broker, network) as member:
        await member.read(lambda: bool(member.has))
        kit.faults.fail("OffsetCommit", "OFFSET_METADATA_TOO_LARGE")
        with pytest.raises(ApiError, match="offset of t-0: OFFSET_METADATA_TOO_LARGE"):
            await member.coordinator.commit({T0: OffsetAndMetadata(1)})


async def test_a_commit_without_a_coordinator_ends(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker, kit: BrokerControl
) -> None:
    settings = attrs.evolve(GROUP, api_timeout_seconds=5)
    async with open_member(broker, network, settings=settings) as member:
        await member.read(lambda: bool(member.has))
        kit.faults.fail("OffsetCommit", "NOT_COORDINATOR", times=None)
        began = trio.current_time()
        with pytest.raises((DisconnectedError, ApiError)):
            await member.coordinator.commit({T0: OffsetAndMetadata(1)})

        assert 5 <= trio.current_time() - began < 6


async def test_offsets_that_are_not_stable_are_waited_for(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker, kit: BrokerControl
) -> None:
    """KIP-447: an open transaction may still change them."""
    fault = kit.faults.fail("OffsetFetch", "UNSTABLE_OFFSET_COMMIT", times=3)
    async with open_member(broker, network) as member:
        await member.read(
            lambda: bool(member.has and not member.subscription.assignment.initializing())
        )

        assert 3 == fault.hits


async def test_a_commit_that_has_waited_over_a_rebalance_is_none_of_the_next_generation(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker, kit: BrokerControl
) -> None:
    """The partition may have been another's meanwhile, who has committed more."""
    async with open_member(broker, network, auto_commit_seconds=None) as member:
        await member.read(lambda: bool(member.has))
        fault = kit.faults.fail("OffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS", times=None)

        async def commit() -> None:
            with pytest.raises(CommitFailedError):
                await member.coordinator.commit({T0: OffsetAndMetadata(1)})

        async with trio.open_nursery() as nursery:
            nursery.start_soon(commit)
            await trio.sleep(1)
            kit.expire_members("readers")
            await member.read(lambda: ("lost", [0, 1, 2, 3]) in member.told and bool(member.has))
            fault.remove()

    assert {} == committed(kit)
