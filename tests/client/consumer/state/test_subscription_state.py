from __future__ import annotations

import re

import pytest

from trionet.client._topic_partition import TopicPartition
from trionet.client.consumer.records._chunk import Chunk, FetchPosition
from trionet.client.consumer.state._partition_state import FetchState, PartitionState
from trionet.client.consumer.state._reset_strategy import EARLIEST, LATEST
from trionet.client.consumer.state._subscription_state import SubscriptionState
from trionet.client.network._cluster import Cluster, Node, PartitionMetadata, TopicMetadata
from trionet.protocol.records._types import Columns

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


@pytest.fixture
def subscriptions() -> SubscriptionState:
    return SubscriptionState(LATEST)


def cluster(leader_epoch: int, leader: int = 1) -> Cluster:
    partition = PartitionMetadata(index=0, leader=leader, leader_epoch=leader_epoch)
    topic = TopicMetadata(name="a", partitions={0: partition})
    nodes = {1: Node(1, "h", 9092), 2: Node(2, "i", 9092)}
    return Cluster(nodes=nodes, topics={"a": topic})


def fetchable(state: PartitionState) -> bool:
    return state.is_fetchable  # what changes is not to be narrowed by the type checker


def hand_out(state: PartitionState, *offsets: int) -> None:
    """Hand out records with these offsets, all in the leader epoch 0."""
    count = len(offsets)
    columns = Columns(list(offsets), [0] * count, [None] * count, [b"a"] * count, [()] * count)
    start, end = FetchPosition(offsets[0], 0), FetchPosition(offsets[-1] + 1, 0)
    chunk = Chunk(A0, columns, timestamp_type=0, epoch=0, start=start, end=end, broker_id=1)
    state.hand_out(chunk)
    chunk.take(count)


# Who decides what is assigned.


def test_topics_are_new_only_once(subscriptions: SubscriptionState) -> None:
    assert subscriptions.subscribe(["a", "b"])
    assert not subscriptions.subscribe(["b", "a"])
    assert subscriptions.subscribe(["a"])
    assert {"a"} == subscriptions.topics


def test_topics_patterns_and_own_choice_exclude_each_other(
    subscriptions: SubscriptionState,
) -> None:
    subscriptions.subscribe(["a"])

    with pytest.raises(ValueError, match=r"unsubscribe\(\)"):
        subscriptions.assign([A0])
    with pytest.raises(ValueError, match=r"unsubscribe\(\)"):
        subscriptions.subscribe_pattern(re.compile("a"))
    subscriptions.unsubscribe()
    subscriptions.assign([A0])
    with pytest.raises(ValueError, match=r"unsubscribe\(\)"):
        subscriptions.subscribe(["a"])
    with pytest.raises(ValueError, match="only to a subscribed consumer"):
        subscriptions.assign_from_group([A0], is_announced=True)


def test_pattern_matches_whole_names(subscriptions: SubscriptionState) -> None:
    subscriptions.subscribe_pattern(re.compile("log-.*"))

    assert subscriptions.subscribe_matching(["log-1", "log-2", "blog-1"])
    assert {"log-1", "log-2"} == subscriptions.topics
    assert not subscriptions.subscribe_matching(["log-2", "log-1"])


def test_a_pattern_does_not_match_what_is_too_long_for_a_topic(
    subscriptions: SubscriptionState,
) -> None:
    subscriptions.subscribe_pattern(re.compile("a*"))

    assert subscriptions.subscribe_matching(["a" * 249, "a" * 250])
    assert {"a" * 249} == subscriptions.topics


def test_metadata_followed(subscriptions: SubscriptionState) -> None:
    assert frozenset() == subscriptions.metadata_topics
    subscriptions.assign([A0, B0])
    assert frozenset({"a", "b"}) == subscriptions.metadata_topics
    subscriptions.unsubscribe()
    subscriptions.subscribe(["a"])
    subscriptions.subscribe_group(["a", "c"])
    assert {"a", "c"} == subscriptions.metadata_topics
    subscriptions.subscribe(["b"])
    assert {"a", "b", "c"} == subscriptions.metadata_topics
    subscriptions.subscribe_group(["d"])
    assert {"b", "d"} == subscriptions.metadata_topics
    subscriptions.subscribe(["a"])
    subscriptions.reset_group_subscription()
    assert {"a"} == subscriptions.metadata_topics
    subscriptions.unsubscribe()
    subscriptions.subscribe_pattern(re.compile("a"))
    assert subscriptions.metadata_topics is None


def test_topics_that_are_looked_up_are_needed_but_not_subscribed_to() -> None:
    subscriptions = SubscriptionState(EARLIEST)
    subscriptions.subscribe(["a"])
    subscriptions.looked_up.update(["b"])

    assert frozenset({"a", "b"}) == subscriptions.metadata_topics
    assert frozenset({"a"}) == subscriptions.subscribed_topics


def test_assignment_fits_the_subscription(subscriptions: SubscriptionState) -> None:
    subscriptions.subscribe(["a"])

    assert subscriptions.fits_subscription([A0, A1])
    assert not subscriptions.fits_subscription([A0, B0])


# What is assigned.


def test_partitions_that_stay_keep_their_positions(subscriptions: SubscriptionState) -> None:
    subscriptions.subscribe(["a"])
    subscriptions.assign_from_group([A0, A1], is_announced=True)
    subscriptions.assignment.seek(A0, FetchPosition(5))
    subscriptions.assign_from_group([A0, B0], is_announced=True)

    assert FetchPosition(5) == subscriptions.assignment.position(A0)
    assert subscriptions.assignment.position(B0) is None
    assert {A0, B0} == subscriptions.assignment.partitions
    assert [B0] == subscriptions.assignment.initializing()


def test_same_assignment_changes_nothing(subscriptions: SubscriptionState) -> None:
    assert subscriptions.assign([A0, A1])
    changes: list[int] = []
    subscriptions.assignment.on_change = lambda: changes.append(1)

    assert not subscriptions.assign([A1, A0])
    assert not changes


def test_what_is_not_assigned_has_no_position(subscriptions: SubscriptionState) -> None:
    with pytest.raises(ValueError, match="a-0 is not assigned"):
        subscriptions.assignment.position(A0)
    with pytest.raises(ValueError, match="a-0 is not assigned"):
        subscriptions.assignment.seek(A0, FetchPosition(0))
    with pytest.raises(ValueError, match="a-0 is not assigned"):
        subscriptions.assignment.pause(A0)


def test_one_that_was_served_is_fetched_last(subscriptions: SubscriptionState) -> None:
    subscriptions.assign([A0, A1, B0])
    subscriptions.assignment.move_to_end(A0)

    assert [A1, B0, A0] == list(subscriptions.assignment.states)


def test_every_change_is_reported(subscriptions: SubscriptionState) -> None:
    told: list[int] = []
    subscriptions.assignment.on_change = lambda: told.append(1)
    subscriptions.assign([A0])
    subscriptions.assignment.seek(A0, FetchPosition(0))
    subscriptions.assignment.pause(A0)
    subscriptions.assignment.resume(A0)
    subscriptions.assignment.request_reset(A0)

    assert 5 == len(told)


# Positions.


def test_a_partition_is_fetchable_with_a_position_and_while_it_is_wanted(
    subscriptions: SubscriptionState,
) -> None:
    subscriptions.subscribe(["a"])
    subscriptions.assign_from_group([A0], is_announced=True)
    state = subscriptions.assignment.states[A0]

    assert not fetchable(state)
    subscriptions.assignment.seek(A0, FetchPosition(0))
    assert fetchable(state)
    subscriptions.assignment.pause(A0)
    assert {A0} == subscriptions.assignment.paused
    assert not fetchable(state)
    subscriptions.assignment.resume(A0)
    assert fetchable(state)
    subscriptions.assignment.mark_revocation_pending([A0])
    assert not fetchable(state)


def test_reset_is_due_until_it_is_asked_for(subscriptions: SubscriptionState) -> None:
    subscriptions.assign([A0, A1])
    subscriptions.assignment.request_reset(A0)
    subscriptions.assignment.request_reset(A1, EARLIEST)
    state = subscriptions.assignment.states[A0]

    assert LATEST == state.strategy
    assert EARLIEST == subscriptions.assignment.states[A1].strategy
    assert [A0, A1] == subscriptions.assignment.to_reset(0.0)
    state.is_request_in_flight = True
    assert [A1] == subscriptions.assignment.to_reset(0.0)
    state.is_request_in_flight = False
    state.retry_at = 1.0
    assert [A1] == subscriptions.assignment.to_reset(0.5)
    assert [A0, A1] == subscriptions.assignment.to_reset(1.0)


def test_new_leader_has_the_position_validated(subscriptions: SubscriptionState) -> None:
    subscriptions.assign([A0])
    subscriptions.assignment.seek(A0, FetchPosition(5, epoch=1))
    state = subscriptions.assignment.states[A0]
    subscriptions.assignment.validate_positions_of_new_leaders(cluster(2))

    assert [A0] == subscriptions.assignment.to_validate(0.0)
    assert not fetchable(state)
    state.validated()
    assert fetchable(state)
    subscriptions.assignment.validate_positions_of_new_leaders(cluster(2))
    assert fetchable(state)
    subscriptions.assignment.validate_positions_of_new_leaders(cluster(3, leader=7))
    assert fetchable(state), "nobody knows where the new leader is"


@pytest.mark.parametrize(("leader", "leader_epoch"), [(1, 3), (1, 0), (2, 2)])
def test_a_leader_or_epoch_that_differs_has_the_position_validated(
    subscriptions: SubscriptionState, leader: int, leader_epoch: int
) -> None:
    """A lower epoch, or another leader in the same, is that of a topic that was created anew."""
    subscriptions.assign([A0])
    subscriptions.assignment.seek(A0, FetchPosition(5))
    subscriptions.assignment.validate_positions_of_new_leaders(cluster(2))
    subscriptions.assignment.states[A0].read_to(FetchPosition(6, epoch=1))
    subscriptions.assignment.validate_positions_of_new_leaders(cluster(leader_epoch, leader))

    assert [A0] == subscriptions.assignment.to_validate(0.0)


@pytest.mark.parametrize(("epoch", "leader_epoch"), [(-1, 2), (1, -1)])
def test_without_epochs_there_is_nothing_to_validate(
    subscriptions: SubscriptionState, epoch: int, leader_epoch: int
) -> None:
    subscriptions.assign([A0])
    subscriptions.assignment.seek(A0, FetchPosition(5, epoch), is_valid=False)
    subscriptions.assignment.validate_positions_of_new_leaders(cluster(leader_epoch))

    assert FetchState.FETCHING is subscriptions.assignment.states[A0].state


def test_what_was_fetched_is_useless_after_a_seek(subscriptions: SubscriptionState) -> None:
    subscriptions.assign([A0])
    state = subscriptions.assignment.states[A0]
    before = state.jumps
    subscriptions.assignment.seek(A0, FetchPosition(0))
    assert before < state.jumps
    before = state.jumps
    subscriptions.assignment.seek(A0, FetchPosition(0))
    assert before < state.jumps


def test_last_record_handed_out_is_finished_when_the_next_is_asked_for(
    subscriptions: SubscriptionState,
) -> None:
    subscriptions.assign([A0])
    subscriptions.assignment.seek(A0, FetchPosition(5))
    state = subscriptions.assignment.states[A0]
    hand_out(state, 5)

    assert {A0: FetchPosition(6, 0)} == subscriptions.assignment.positions()
    assert {A0: FetchPosition(5, 0)} == subscriptions.assignment.finished_positions()
    state.finish()
    assert {A0: FetchPosition(6, 0)} == subscriptions.assignment.finished_positions()


def test_invisible_offsets_are_finished_if_the_records_before_them_are(
    subscriptions: SubscriptionState,
) -> None:
    """Such as the marker of a transaction at the end of the log, where a consumer waits."""
    subscriptions.assign([A0])
    subscriptions.assignment.seek(A0, FetchPosition(5))
    state = subscriptions.assignment.states[A0]
    hand_out(state, 5)
    state.finish()
    state.read_to(FetchPosition(8, 0))

    assert {A0: FetchPosition(8, 0)} == subscriptions.assignment.finished_positions()


def test_records_are_put_back_unless_they_are_finished(subscriptions: SubscriptionState) -> None:
    subscriptions.assign([A0])
    subscriptions.assignment.seek(A0, FetchPosition(5))
    state = subscriptions.assignment.states[A0]
    hand_out(state, 5)
    state.put_back()
    assert FetchPosition(5, 0) == subscriptions.assignment.position(A0)

    hand_out(state, 5)
    state.commit(6)
    state.put_back()
    assert FetchPosition(6, 0) == subscriptions.assignment.position(A0)


def test_a_lower_offset_finishes_only_the_records_before_it(
    subscriptions: SubscriptionState,
) -> None:
    subscriptions.assign([A0])
    subscriptions.assignment.seek(A0, FetchPosition(5))
    state = subscriptions.assignment.states[A0]
    hand_out(state, 5, 6, 7)
    state.commit(6)

    assert FetchPosition(6, 0) == state.finished
    assert state.is_uncommitted
    state.commit(8)
    assert FetchPosition(8, 0) == state.finished
    assert not state.is_uncommitted


# The replica nearby.


def test_replica_nearby_is_preferred_for_a_time(subscriptions: SubscriptionState) -> None:
    subscriptions.assign([A0])
    state = subscriptions.assignment.states[A0]
    state.prefer_replica(2, until=10.0)

    assert 2 == state.preferred_replica(9.0)
    assert state.preferred_replica(10.0) is None
    state.prefer_replica(2, until=10.0)
    assert 2 == state.forget_replica()
    assert state.preferred_replica(9.0) is None


def test_replica_nearby_is_forgotten_with_the_leader(subscriptions: SubscriptionState) -> None:
    subscriptions.assign([A0])
    subscriptions.assignment.seek(A0, FetchPosition(5))
    state = subscriptions.assignment.states[A0]
    state.prefer_replica(2, until=10.0)
    subscriptions.assignment.validate_positions_of_new_leaders(cluster(4))

    assert state.preferred_replica(0.0) is None
