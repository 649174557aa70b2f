from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from trionet.client.consumer.assignors import MemberSubscription, RoundRobinAssignor

NOWHERE: frozenset[str] = frozenset()


def assign(
    counts: Mapping[str, int], members: Mapping[str, MemberSubscription]
) -> dict[str, list[str]]:
    partitions = {name: dict.fromkeys(range(count), NOWHERE) for name, count in counts.items()}
    found = RoundRobinAssignor().assign(partitions, members)
    return {member: [str(each) for each in held] for member, held in found.items()}


def test_partitions_of_all_topics_go_round() -> None:
    members = {each: MemberSubscription(["t0", "t1"]) for each in ("b", "a")}

    assert {
        "a": ["t0-0", "t0-2", "t1-1"],
        "b": ["t0-1", "t1-0", "t1-2"],
    } == assign({"t0": 3, "t1": 3}, members)


def test_who_does_not_subscribe_is_passed_over() -> None:
    members = {
        "a": MemberSubscription(["t0"]),
        "b": MemberSubscription(["t0", "t1"]),
        "c": MemberSubscription(["t0", "t1", "t2"]),
    }

    assert {
        "a": ["t0-0"],
        "b": ["t1-0"],
        "c": ["t1-1", "t2-0", "t2-1", "t2-2"],
    } == assign({"t0": 1, "t1": 2, "t2": 3}, members)


def test_static_members_come_first() -> None:
    members = {
        "m1": MemberSubscription(["t0"]),
        "m2": MemberSubscription(["t0"], group_instance_id="x"),
    }

    assert {"m2": ["t0-0"], "m1": ["t0-1"]} == assign({"t0": 2}, members)


def test_unknown_or_unwanted_topics_are_not_assigned() -> None:
    members = {"a": MemberSubscription(["gone"]), "b": MemberSubscription(["t0"])}

    assert {"a": [], "b": ["t0-0"]} == assign({"t0": 1, "t1": 1}, members)


@given(
    counts=st.dictionaries(st.sampled_from(["t0", "t1", "t2"]), st.integers(1, 6)),
    members=st.integers(1, 5),
)
def test_shares_differ_by_at_most_one_where_all_want_the_same(
    counts: dict[str, int], members: int
) -> None:
    found = assign(
        counts, {f"m{n}": MemberSubscription(["t0", "t1", "t2"]) for n in range(members)}
    )

    sizes = [len(held) for held in found.values()]
    assert sum(counts.values()) == len({each for held in found.values() for each in held})
    assert sum(counts.values()) == sum(sizes)
    assert max(sizes) - min(sizes) <= 1
