from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.broker.model._leadership import NO_LEADER, Leadership, PartitionRegistration

NODES = [1, 2, 3]


def with_partitions(count: int = 1, replication_factor: int = 3) -> Leadership[int]:
    leadership: Leadership[int] = Leadership(NODES)
    for number, replicas in enumerate(leadership.place(count, replication_factor)):
        leadership.add(number, replicas)
    return leadership


def leaders(leadership: Leadership[int], count: int) -> list[int]:
    return [leadership[number].leader for number in range(count)]


# Placing.


def test_partitions_go_around_the_ring_of_nodes() -> None:
    leadership: Leadership[int] = Leadership(NODES)

    assert ((1, 2), (2, 3), (3, 1), (1, 2)) == leadership.place(4, 2)


def test_the_next_topic_goes_on_where_the_last_left_off() -> None:
    leadership = with_partitions(2)

    assert ((3, 1, 2), (1, 2, 3)) == leadership.place(2, 3)


def test_a_stopped_node_gets_replicas_and_leads_nothing() -> None:
    leadership: Leadership[int] = Leadership(NODES)
    leadership.stop(2)

    assert ((1, 2), (3, 1), (1, 2)) == leadership.place(3, 2)


@given(st.integers(1, 6), st.integers(1, 40), st.data())
def test_the_nodes_lead_as_many_partitions_each(
    nodes: int, count: int, data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, nodes))
    leadership: Leadership[int] = Leadership(range(nodes))

    placed = leadership.place(count, factor)

    assert count == len(placed)
    assert all(factor == len(set(replicas)) == len(replicas) for replicas in placed)
    led = Counter(replicas[0] for replicas in placed)
    assert max(led.values()) - min(led[node] for node in range(nodes)) <= 1


def test_replicas_on_nodes_that_there_are_not_are_left_out() -> None:
    leadership: Leadership[str] = Leadership([1])
    leadership.add("some", (3, 2, 1))
    leadership.add("none", (3, 2))
    leadership.add("unsaid", ())

    assert [(1,)] * 3 == [leadership[key].replicas for key in ("some", "none", "unsaid")]


def test_replicas_of_a_node_are_counted() -> None:
    assert [3, 3, 2] == [with_partitions(4, 2).replicas_on(node) for node in NODES]
    alone: Leadership[int] = Leadership([1])
    alone.add(0, ())
    assert 1 == alone.replicas_on(1)


# Stopping and starting.


def test_what_a_stopped_node_led_goes_to_the_next_replica_in_the_next_epoch() -> None:
    leadership = with_partitions(3)

    assert [0] == leadership.stop(1)
    assert PartitionRegistration((1, 2, 3), leader=2, epoch=1, last_leader=2) == leadership[0]
    assert [2, 3] == leadership.in_sync(leadership[0]) == leadership.live
    assert [1] == leadership.offline_replicas(leadership[0])


def test_what_no_replica_can_lead_has_no_leader_until_one_starts() -> None:
    leadership = with_partitions(3, replication_factor=1)

    assert [1] == leadership.stop(2)
    assert (NO_LEADER, 1) == (leadership[1].leader, leadership[1].epoch)
    assert [] == leadership.stop(2)
    assert [1] == leadership.start(2)
    assert (2, 2) == (leadership[1].leader, leadership[1].epoch)


def test_the_last_leader_stays_in_sync() -> None:
    leadership = with_partitions(1, replication_factor=2)
    leadership.stop(1)
    assert [2] == leadership.in_sync(leadership[0])
    leadership.stop(2)
    assert [2] == leadership.in_sync(leadership[0])
    assert [1, 2] == leadership.offline_replicas(leadership[0])
    leadership.start(1)
    assert [1] == leadership.in_sync(leadership[0])
    assert [] == leadership.in_sync(leadership.get(9))


def test_a_node_that_starts_takes_nothing_from_others_until_it_is_asked() -> None:
    leadership = with_partitions(3)
    leadership.stop(1)

    assert [] == leadership.start(1)
    assert [2, 2, 3] == leaders(leadership, 3)
    assert [0] == leadership.elect_preferred()
    assert [1, 2, 3] == leaders(leadership, 3)
    assert 2 == leadership[0].epoch
    assert [] == leadership.elect_preferred()


def test_the_controller_is_the_first_node_that_lives() -> None:
    leadership = with_partitions()
    found = [leadership.controller]
    for node in NODES:
        leadership.stop(node)
        found.append(leadership.controller)

    assert [1, 2, 3, NO_LEADER] == found


# Moving.


def test_a_leader_moves_once() -> None:
    leadership = with_partitions()

    assert leadership.move(0, 3)
    assert not leadership.move(0, 3)
    assert (3, 1) == (leadership[0].leader, leadership[0].epoch)


@pytest.mark.parametrize(
    ("key", "node", "message"),
    [
        (9, 1, "partition 9 does not exist"),
        (0, 7, "node 7 does not exist; allowed: 1, 2, 3"),
        (0, 3, "node 3 is not a replica of partition 0; allowed: 1, 2"),
        (0, 2, "node 2 is stopped; allowed: 1"),
    ],
)
def test_who_cannot_lead_is_refused(key: int, node: int, message: str) -> None:
    leadership = with_partitions(replication_factor=2)
    leadership.stop(2)

    with pytest.raises(ValueError, match=message):
        leadership.move(key, node)

    assert (1, 0) == (leadership[0].leader, leadership[0].epoch)


def test_a_partition_that_is_not_there_has_no_leader() -> None:
    leadership = with_partitions()
    leadership.remove(0)
    leadership.remove(0)

    assert PartitionRegistration((), NO_LEADER, -1, NO_LEADER) == leadership.get(0)
    assert [] == leadership.stop(1)


# Whatever happens.


@given(
    st.lists(
        st.tuples(st.sampled_from(["stop", "start", "move", "prefer"]), st.integers(1, 4)),
        max_size=30,
    ),
    st.integers(1, 4),
)
def test_leaders_live_and_epochs_count_their_changes(
    steps: list[tuple[str, int]], factor: int
) -> None:
    leadership: Leadership[int] = Leadership([1, 2, 3, 4])
    for number, replicas in enumerate(leadership.place(5, factor)):
        leadership.add(number, replicas)
    for verb, node in steps:
        before = {number: leadership[number] for number in range(5)}
        if verb == "stop":
            changed = leadership.stop(node)
        elif verb == "start":
            changed = leadership.start(node)
        elif verb == "prefer":
            changed = leadership.elect_preferred()
        else:
            able = [n for n in range(5) if node in leadership.live_replicas(leadership[n])]
            changed = [number for number in able[:1] if leadership.move(number, node)]
        for number, old in before.items():
            new = leadership[number]
            live = leadership.live_replicas(new)
            assert (number in changed) == (old.leader != new.leader)
            assert new.epoch - old.epoch == (number in changed)
            assert new.leader in (live or [NO_LEADER])
            assert leadership.in_sync(new) == (live or [new.last_leader])
            assert new.last_leader == (new.leader if live else old.last_leader)
            assert sorted(live + leadership.offline_replicas(new)) == sorted(old.replicas)
