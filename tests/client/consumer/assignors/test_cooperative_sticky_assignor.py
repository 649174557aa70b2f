from __future__ import annotations

import attrs
import pytest
from hypothesis import given

from support.assigning import (
    Assignment,
    Partitions,
    check_even,
    check_valid,
    fewer,
    mixed_groups,
    moves,
    rejoining,
    texts,
    topics,
)
from support.rebalancing import Group as RebalancedGroup
from support.rebalancing import GroupMember
from trionet.client._topic_partition import TopicPartition
from trionet.client.consumer.assignors import CooperativeStickyAssignor, MemberSubscription

Group = tuple[Partitions, dict[str, MemberSubscription]]

cooperative = CooperativeStickyAssignor()


def owning(generation: int, *partitions: int) -> MemberSubscription:
    held = [TopicPartition("t0", n) for n in partitions]
    return MemberSubscription(["t0"], None, held, generation)


def test_what_is_to_move_is_assigned_to_no_member_until_its_owner_has_given_it_up() -> None:
    partitions = topics(t0=4)
    members = {"a": owning(1, 0, 1, 2, 3), "b": owning(-1)}

    first = cooperative.assign(partitions, members)
    second = cooperative.assign(partitions, rejoining(cooperative, members, first, 2))

    assert {"a": ["t0-0", "t0-1"], "b": []} == texts(first)
    assert {"a": ["t0-0", "t0-1"], "b": ["t0-2", "t0-3"]} == texts(second)


def test_what_no_member_owns_is_assigned_at_once() -> None:
    members = {"a": owning(1, 0, 1), "b": owning(-1)}

    assert {"a": ["t0-0", "t0-1"], "b": ["t0-2", "t0-3"]} == texts(
        cooperative.assign(topics(t0=4), members)
    )


def test_owner_keeps_what_one_of_an_older_generation_claims_as_well() -> None:
    members = {"a": owning(2, 0, 1), "b": owning(1, 1, 2)}

    assert {"a": ["t0-0", "t0-1"], "b": ["t0-2"]} == texts(
        cooperative.assign(topics(t0=3), members)
    )


def test_disputed_partition_is_assigned_to_no_member_until_both_gave_it_up() -> None:
    members = {"a": owning(1, 0, 1), "b": owning(1, 1, 2)}
    partitions = topics(t0=3)

    first = cooperative.assign(partitions, members)
    second = cooperative.assign(partitions, rejoining(cooperative, members, first, 2))

    assert {"a": ["t0-0"], "b": ["t0-2"]} == texts(first)
    assert {"a": ["t0-0", "t0-1"], "b": ["t0-2"]} == texts(second)


@pytest.mark.parametrize("data", [None, b"", b"\0\0"])
def test_generation_is_taken_from_the_user_data_of_old_members(data: bytes | None) -> None:
    old = attrs.evolve(owning(-1, 0), user_data=cooperative.user_data(["t0"], [], 5))
    silent = attrs.evolve(owning(-1, 0), user_data=data)

    assert b"\0\0\0\5" == old.user_data
    assert {"a": [], "b": ["t0-0"]} == texts(
        cooperative.assign(topics(t0=1), {"a": silent, "b": old})
    )


@fewer
@given(mixed_groups(), mixed_groups())
def test_no_partition_goes_to_two_members_and_two_rebalances_are_enough(
    first: Group, second: Group
) -> None:
    before = cooperative.assign(*first)
    partitions, members = second

    told = rejoining(cooperative, members, before)
    between = cooperative.assign(partitions, told)
    after = cooperative.assign(partitions, rejoining(cooperative, members, between, 2))

    owned: Assignment = {member: list(each.owned_partitions) for member, each in told.items()}
    assert not moves(owned, between)
    assert not moves(between, after)
    check_valid(partitions, members, after)
    check_even(members, after)


def test_members_that_are_near_the_same_partitions_do_not_take_turns() -> None:
    group = RebalancedGroup(
        cooperative,
        {
            "e0": {0: frozenset("bc")},
            "e1": {0: frozenset("ac"), 1: frozenset("ab")},
        },
    )
    for id, wanted, rack in (
        ("m0", ["e0", "e1"], "c"),
        ("m2", ["e0"], "a"),
        ("m1", ["e0", "e1"], "c"),
    ):
        group.members[id] = GroupMember(wanted, rack, instance=id)
        group.settle()

    assert {"m0": 1, "m1": 1, "m2": 1} == {id: len(held) for id, held in group.owned().items()}
