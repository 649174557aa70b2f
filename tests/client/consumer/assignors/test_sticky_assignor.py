from __future__ import annotations

import random
from graphlib import TopologicalSorter
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.assigning import (
    Assignment,
    Partitions,
    check_even,
    check_valid,
    equal_groups,
    fewer,
    mixed_groups,
    moves,
    rejoining,
    subscribed,
    texts,
    topics,
    worth,
)
from support.rebalancing import random_group
from trionet.client._topic_partition import TopicPartition
from trionet.client.consumer.assignors import MemberSubscription, StickyAssignor

Group = tuple[Partitions, dict[str, MemberSubscription]]

sticky = StickyAssignor()


def want(*names: str) -> MemberSubscription:
    return MemberSubscription(names)


def test_first_assignment_goes_round_by_topic() -> None:
    members = {"a": want("t0", "t1"), "b": want("t0", "t1")}

    assert {
        "a": ["t0-0", "t0-2", "t1-1"],
        "b": ["t0-1", "t1-0", "t1-2"],
    } == texts(sticky.assign(topics(t0=3, t1=3), members))


def test_one_who_leaves_leaves_only_its_own_to_the_others() -> None:
    members = {each: want("t0", "t1", "t2", "t3") for each in "abc"}
    partitions = topics(t0=2, t1=2, t2=2, t3=2)
    before = sticky.assign(partitions, members)
    del members["b"]

    after = sticky.assign(partitions, rejoining(sticky, members, before))

    check_even(members, after)
    assert not moves(before, after)


def test_one_who_comes_takes_its_share_and_nothing_else_moves() -> None:
    partitions = topics(t0=9)
    members = {"a": want("t0"), "b": want("t0")}
    before = sticky.assign(partitions, members)
    members["c"] = want("t0")

    after = sticky.assign(partitions, rejoining(sticky, members, before))

    assert [3, 3, 3] == [len(held) for held in after.values()]
    assert {"c"} == {taker for _, taker in moves(before, after).values()}
    assert 3 == len(moves(before, after))


def test_new_partitions_go_to_those_who_have_less() -> None:
    members = {"a": want("t0"), "b": want("t0")}
    before = {"a": [TopicPartition("t0", 0), TopicPartition("t0", 1)], "b": []}

    after = sticky.assign(topics(t0=4), rejoining(sticky, members, before))

    assert {"a": ["t0-0", "t0-1"], "b": ["t0-2", "t0-3"]} == texts(after)


def test_topics_that_are_gone_or_not_wanted_any_more_are_forgotten() -> None:
    before = {"a": [TopicPartition("t0", 0), TopicPartition("t1", 0), TopicPartition("t1", 7)]}
    members = {"a": want("t1"), "b": want("t0", "t1")}

    after = sticky.assign(topics(t0=1, t1=1), rejoining(sticky, members, before))

    assert {"a": ["t1-0"], "b": ["t0-0"]} == texts(after)


def claiming(generation: int, *partitions: int) -> MemberSubscription:
    held = [TopicPartition("t0", n) for n in partitions]
    return MemberSubscription(["t0"], sticky.user_data(["t0"], held, generation))


def test_of_two_who_claim_the_same_the_newer_generation_has_it() -> None:
    members = {"a": claiming(1, 0, 1), "b": claiming(2, 1, 2), "c": claiming(2)}

    after = texts(sticky.assign(topics(t0=6), members))

    assert "t0-0" in after["a"]
    assert {"t0-1", "t0-2"} == set(after["b"])


def test_who_lost_something_gets_that_back_when_it_gets_something() -> None:
    members = {"a": claiming(1, 1), "b": claiming(2, 0, 1, 2)}

    after = texts(sticky.assign(topics(t0=3), members))

    assert {"a": ["t0-1"], "b": ["t0-0", "t0-2"]} == after


def test_who_claims_the_same_with_the_same_right_has_no_right() -> None:
    members = {"a": claiming(1, 0, 1, 2), "b": claiming(1, 2)}

    after = texts(sticky.assign(topics(t0=4), members))

    assert {"a": ["t0-0", "t0-1"], "b": ["t0-2", "t0-3"]} == after


@pytest.mark.parametrize(
    "data", [b"", b"\0", b"\0\0\0\1\xff\xfft", b"\x7f\xff\xff\xff\xff\xfa", b"~" * 9]
)
def test_senseless_user_data_is_as_good_as_none(data: bytes) -> None:
    members = {"a": MemberSubscription(["t0"], data), "b": claiming(1, 1)}

    assert {"a": ["t0-0"], "b": ["t0-1"]} == texts(sticky.assign(topics(t0=2), members))


def test_user_data_is_what_kafkas_assignor_writes() -> None:
    held = [TopicPartition("t0", 0), TopicPartition("t1", 3), TopicPartition("t0", 2)]

    assert (
        b"\0\0\0\2\0\2t0\0\0\0\2\0\0\0\0\0\0\0\2\0\2t1\0\0\0\1\0\0\0\3\0\0\0\7"
    ) == sticky.user_data(["t0", "t1"], held, 7)
    assert sticky.user_data(["t0"], None, -1) is None


def test_user_data_of_old_members_have_no_generation() -> None:
    raw = b"\0\0\0\1\0\2t0\0\0\0\1\0\0\0\1"
    members = {"a": MemberSubscription(["t0"], raw), "b": want("t0")}

    assert {"a": ["t0-1"], "b": ["t0-0"]} == texts(sticky.assign(topics(t0=2), members))


def at(rack: str) -> MemberSubscription:
    return MemberSubscription(["t0"], rack_id=rack)


def test_near_partitions_are_preferred_within_the_same_shares() -> None:
    racks = [{"c"}, {"b"}, {"a"}, {"c"}, {"b"}, {"a"}]
    partitions = {"t0": {n: frozenset(each) for n, each in enumerate(racks)}}

    assert {"m1": ["t0-2", "t0-5"], "m2": ["t0-1", "t0-4"], "m3": ["t0-0", "t0-3"]} == texts(
        sticky.assign(partitions, {"m1": at("a"), "m2": at("b"), "m3": at("c")})
    )


def test_far_partitions_move_to_those_who_are_near() -> None:
    partitions = {"t0": {0: frozenset("a"), 1: frozenset("b"), 2: frozenset("a")}}
    members = {"m1": at("a"), "m2": at("b")}
    before = {
        "m1": [TopicPartition("t0", 1), TopicPartition("t0", 2)],
        "m2": [TopicPartition("t0", 0)],
    }

    after = sticky.assign(partitions, rejoining(sticky, members, before))

    assert {"m1": ["t0-0", "t0-2"], "m2": ["t0-1"]} == texts(after)


def test_far_partitions_stay_where_no_consumer_is_near() -> None:
    partitions = {"t0": {0: frozenset("z"), 1: frozenset("z"), 2: frozenset("a")}}
    members = {"m1": at("a"), "m2": at("b"), "m3": at("a")}
    before = {f"m{n}": [TopicPartition("t0", 2 - n % 3)] for n in (1, 2, 3)}

    after = sticky.assign(partitions, rejoining(sticky, members, before))

    assert ["t0-0"] == texts(after)["m2"]
    check_even(members, after)


@fewer
@given(mixed_groups())
def test_assignment_is_complete_and_even(group: Group) -> None:
    partitions, members = group

    assignment = sticky.assign(partitions, members)

    check_valid(partitions, members, assignment)
    check_even(members, assignment)


@fewer
@given(mixed_groups())
def test_nothing_moves_where_nothing_has_changed(group: Group) -> None:
    partitions, members = group
    before = sticky.assign(partitions, members)

    assert before == sticky.assign(partitions, rejoining(sticky, members, before))


@fewer
@given(mixed_groups(), mixed_groups())
def test_members_never_just_exchange_partitions(first: Group, second: Group) -> None:
    before = sticky.assign(*first)
    partitions, members = second

    after = sticky.assign(partitions, rejoining(sticky, members, before))

    check_valid(partitions, members, after)
    check_even(members, after)
    still_wanted: Assignment = {
        member: [each for each in held if each.topic in members[member].topics]
        for member, held in before.items()
        if member in members
    }
    pairs = set(moves(still_wanted, after).values())
    assert not {(taker, giver) for giver, taker in pairs} & pairs


def test_partitions_do_not_go_round_in_circles() -> None:
    partitions = topics(t0=2, t1=7, t2=3, t3=4)
    members = {
        "m0": want("t0", "t2"),
        "m1": want("t2", "t0", "t1"),
        "m2": want("t0", "t3", "t2"),
        "m3": want("t2", "t3"),
        "m4": want("t1"),
        "m5": want("t1"),
        "m6": want("t2", "t3"),
    }
    names = {
        "m0": ["t2-0", "t2-1", "t2-2"],
        "m1": ["t0-0", "t1-0", "t1-1", "t1-2", "t1-3", "t1-5", "t1-6"],
        "m2": ["t0-1", "t3-0", "t3-1", "t3-2", "t3-3"],
        "m5": ["t1-4"],
    }
    before = {
        member: [TopicPartition(each[:2], int(each[3:])) for each in held]
        for member, held in names.items()
    }

    after = sticky.assign(partitions, rejoining(sticky, members, before))

    check_even(members, after)
    givers: dict[str, set[str]] = {}
    for giver, taker in moves(before, after).values():
        givers.setdefault(taker, set()).add(giver)
    TopologicalSorter(givers).prepare()


@fewer
@given(equal_groups(), equal_groups())
def test_as_much_as_can_be_stays_where_all_want_the_same(first: Group, second: Group) -> None:
    before = sticky.assign(*first)
    partitions, members = second

    after = sticky.assign(partitions, rejoining(sticky, members, before))

    total = sum(map(len, partitions.values()))
    share, larger = divmod(total, len(members))
    had = {
        member: sum(
            each.partition in partitions.get(each.topic, ()) for each in before.get(member, ())
        )
        for member in members
    }
    could_keep = sum(min(count, share) for count in had.values())
    could_keep += min(larger, sum(count > share for count in had.values()))
    assert could_keep == sum(
        len({*before.get(member, ())} & {*after[member]}) for member in members
    )


@fewer
@given(st.randoms(use_true_random=False))
def test_no_assignment_is_more_even_or_nearer_or_moves_less(rng: random.Random) -> None:
    group = random_group(rng, sticky, topics=2, partitions=3, members=3)
    before = group.owned()
    partitions, members = group.partitions, group.subscriptions()

    after = sticky.assign(partitions, members)

    wanted = sorted(subscribed(partitions, members))
    takers = [[id for id, each in members.items() if one.topic in each.topics] for one in wanted]
    possible: list[Assignment] = [
        {
            id: [one for one, taker in zip(wanted, chosen, strict=True) if taker == id]
            for id in members
        }
        for chosen in product(*takers)
    ]
    assert worth(partitions, members, before, after) == min(
        worth(partitions, members, before, each) for each in possible
    )
