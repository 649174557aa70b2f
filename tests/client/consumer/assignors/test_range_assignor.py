from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from support.assigning import fewer
from trionet.client._topic_partition import TopicPartition
from trionet.client.consumer.assignors import MemberSubscription, RangeAssignor

NOWHERE: frozenset[str] = frozenset()


def topics(**counts: int) -> dict[str, dict[int, frozenset[str]]]:
    return {name: dict.fromkeys(range(count), NOWHERE) for name, count in counts.items()}


def assign(
    partitions: Mapping[str, Mapping[int, frozenset[str]]],
    members: Mapping[str, MemberSubscription],
) -> dict[str, list[str]]:
    found = RangeAssignor().assign(partitions, members)
    return {member: [str(each) for each in held] for member, held in found.items()}


def test_first_members_get_one_more_of_each_topic() -> None:
    members = {each: MemberSubscription(["t0", "t1"]) for each in ("b", "a")}

    assert {
        "a": ["t0-0", "t0-1", "t1-0", "t1-1"],
        "b": ["t0-2", "t1-2"],
    } == assign(topics(t0=3, t1=3), members)


def test_topic_goes_only_to_those_who_subscribe() -> None:
    members = {"a": MemberSubscription(["t0"]), "b": MemberSubscription(["t0", "t1"])}

    assert {"a": ["t0-0"], "b": ["t0-1", "t1-0", "t1-1"]} == assign(topics(t0=2, t1=2), members)


def test_member_without_a_topic_gets_nothing_and_unknown_topics_are_nobodys() -> None:
    members = {"a": MemberSubscription(["gone"]), "b": MemberSubscription(["t0"])}

    assert {"a": [], "b": ["t0-0"]} == assign(topics(t0=1), members)


def test_static_members_come_first_in_the_order_of_their_names() -> None:
    members = {
        "m1": MemberSubscription(["t0"]),
        "m2": MemberSubscription(["t0"], group_instance_id="y"),
        "m3": MemberSubscription(["t0"], group_instance_id="x"),
    }

    assert {"m3": ["t0-0"], "m2": ["t0-1"], "m1": ["t0-2"]} == assign(topics(t0=3), members)


def test_same_topic_named_twice_counts_once() -> None:
    members = {"a": MemberSubscription(["t0", "t0"]), "b": MemberSubscription(["t0"])}

    assert {"a": ["t0-0"], "b": ["t0-1"]} == assign(topics(t0=2), members)


def at(rack: str) -> MemberSubscription:
    return MemberSubscription(["t0"], rack_id=rack)


def test_near_partitions_are_preferred_within_the_same_shares() -> None:
    racks = [{"c"}, {"b"}, {"a"}, {"c"}, {"b"}, {"a"}]
    partitions = {"t0": {n: frozenset(each) for n, each in enumerate(racks)}}

    assert {"m1": ["t0-2", "t0-5"], "m2": ["t0-1", "t0-4"], "m3": ["t0-0", "t0-3"]} == assign(
        partitions, {"m1": at("a"), "m2": at("b"), "m3": at("c")}
    )


def test_every_partition_is_assigned_where_the_near_ones_fill_the_larger_shares() -> None:
    """Three zones, two replicas, and all members in one of the zones."""
    partitions = {"t0": {n: frozenset({"abc"[n % 3], "abc"[(n + 1) % 3]}) for n in range(5)}}

    assert {"m1": ["t0-0", "t0-2"], "m2": ["t0-1", "t0-3"], "m3": ["t0-4"]} == assign(
        partitions, {each: at("a") for each in ("m1", "m2", "m3")}
    )


def test_who_cannot_be_near_takes_what_is_left() -> None:
    partitions = {"t0": {n: frozenset({"a"}) for n in range(3)} | {3: frozenset({"b"})}}

    assert {"m1": ["t0-0", "t0-1"], "m2": ["t0-2", "t0-3"]} == assign(
        partitions, {"m1": at("a"), "m2": at("z")}
    )


def test_racks_change_nothing_where_every_rack_has_every_partition() -> None:
    partitions = {"t0": {n: frozenset({"a", "b"}) for n in range(2)}}

    assert {"m1": ["t0-0"], "m2": ["t0-1"]} == assign(partitions, {"m1": at("b"), "m2": at("a")})


def test_topics_divided_alike_stay_together_even_where_racks_differ() -> None:
    both = ["t0", "t1"]
    members = {
        "m1": MemberSubscription(both, rack_id="a"),
        "m2": MemberSubscription(both, rack_id="b"),
    }
    partitions = {
        "t0": {0: frozenset("b"), 1: frozenset("a")},
        "t1": {0: frozenset("b"), 1: frozenset("ab")},
    }

    assert {"m1": ["t0-1", "t1-1"], "m2": ["t0-0", "t1-0"]} == assign(partitions, members)


@st.composite
def groups(
    draw: st.DrawFn,
) -> tuple[dict[str, dict[int, frozenset[str]]], dict[str, MemberSubscription]]:
    names = ["t0", "t1", "t2"]
    racks = st.frozensets(st.sampled_from("abc"), max_size=2)
    partitions = {
        name: dict(enumerate(draw(st.lists(racks, min_size=1, max_size=7)))) for name in names[:-1]
    }
    members = {
        f"m{n}": MemberSubscription(
            draw(st.lists(st.sampled_from(names))),
            rack_id=draw(st.none() | st.sampled_from("abc")),
        )
        for n in range(draw(st.integers(1, 4)))
    }
    return partitions, members


@fewer
@given(groups())
def test_every_topic_is_shared_out_evenly_whatever_the_racks(
    group: tuple[dict[str, dict[int, frozenset[str]]], dict[str, MemberSubscription]],
) -> None:
    partitions, members = group

    found = RangeAssignor().assign(partitions, members)

    assert set(members) == set(found)
    for topic, known in partitions.items():
        subscribed = [each for each in members if topic in members[each].topics]
        shares = {
            member: sorted(n for name, n in held if name == topic) for member, held in found.items()
        }
        assert sorted(n for each in shares.values() for n in each) == (
            list(known) if subscribed else []
        )
        assert all(not share or member in subscribed for member, share in shares.items())
        counts = [len(shares[member]) for member in subscribed]
        assert max(counts, default=0) - min(counts, default=0) <= 1


def test_response_is_sorted_partitions() -> None:
    found = RangeAssignor().assign(topics(t0=2), {"a": MemberSubscription(["t0"])})

    assert {"a": [TopicPartition("t0", 0), TopicPartition("t0", 1)]} == found
