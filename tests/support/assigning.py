"""Groups as assignors see them, and what holds of every assignment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations

import attrs
from hypothesis import settings
from hypothesis import strategies as st

from trionet.client._topic_partition import TopicPartition
from trionet.client.consumer.assignors import (
    Assignor,
    CooperativeStickyAssignor,
    MemberSubscription,
    RangeAssignor,
    StickyAssignor,
)
from trionet.client.consumer.assignors._assignor import racks_matter

#: Whole groups take long to think up: a third of the examples, of as many as the run asks for.
fewer = settings(max_examples=settings().max_examples // 3)

NOWHERE: frozenset[str] = frozenset()
TOPICS = ("t0", "t1", "t2", "t3")

Partitions = dict[str, dict[int, frozenset[str]]]
Assignment = dict[str, list[TopicPartition]]


def topics(**counts: int) -> Partitions:
    """Topics with so many partitions, whose replicas stand nowhere."""
    return {name: dict.fromkeys(range(count), NOWHERE) for name, count in counts.items()}


def all_of(partitions: Mapping[str, Iterable[int]]) -> set[TopicPartition]:
    return {TopicPartition(name, n) for name, numbers in partitions.items() for n in numbers}


def subscribed(
    partitions: Mapping[str, Iterable[int]], members: Mapping[str, MemberSubscription]
) -> set[TopicPartition]:
    """The partitions that somebody wants."""
    wanted = {topic for each in members.values() for topic in each.topics}
    return {each for each in all_of(partitions) if each.topic in wanted}


def texts(assignment: Mapping[str, Iterable[TopicPartition]]) -> dict[str, list[str]]:
    return {member: [str(each) for each in held] for member, held in assignment.items()}


def rejoining(
    assignor: Assignor,
    members: Mapping[str, MemberSubscription],
    assignment: Mapping[str, list[TopicPartition]],
    generation: int = 1,
) -> dict[str, MemberSubscription]:
    """The members with what they tell after an assignment; who got none yet tells nothing."""
    told: dict[str, MemberSubscription] = {}
    for member, subscription in members.items():
        held = assignment.get(member)
        data = assignor.user_data(subscription.topics, held, -1 if held is None else generation)
        told[member] = attrs.evolve(
            subscription,
            user_data=data,
            owned_partitions=[each for each in held or () if each.topic in subscription.topics],
            generation_id=-1 if held is None else generation,
        )
    return told


def check_valid(
    partitions: Partitions, members: Mapping[str, MemberSubscription], assignment: Assignment
) -> None:
    """Everything that somebody wants is given once, to one who wants it."""
    given = [each for held in assignment.values() for each in held]

    assert set(members) == set(assignment)
    assert subscribed(partitions, members) == set(given)
    assert len(given) == len(set(given))
    for member, held in assignment.items():
        assert {each.topic for each in held} <= set(members[member].topics)


def check_assigned(
    assignor: Assignor,
    partitions: Partitions,
    members: Mapping[str, MemberSubscription],
    assignment: Assignment,
) -> None:
    """The assignment is valid, and as even as those of this assignor."""
    check_valid(partitions, members, assignment)
    if isinstance(assignor, StickyAssignor | CooperativeStickyAssignor):
        check_even(members, assignment)
    elif isinstance(assignor, RangeAssignor):
        check_topics_even(partitions, members, assignment)


def check_topics_even(
    partitions: Partitions, members: Mapping[str, MemberSubscription], assignment: Assignment
) -> None:
    """The shares of every topic differ by one at most."""
    for topic in partitions:
        shares = [
            sum(each.topic == topic for each in assignment[id])
            for id, member in members.items()
            if topic in member.topics
        ]
        assert max(shares, default=0) - min(shares, default=0) <= 1


def check_even(members: Mapping[str, MemberSubscription], assignment: Assignment) -> None:
    """Nobody could be given something of one who has two or more partitions above (KIP-54).

    Nor by way of others, each of whom passes something on.
    """
    owners = {each.topic: set[str]() for held in assignment.values() for each in held}
    for member, held in assignment.items():
        for each in held:
            owners[each.topic].add(member)
    for taker in assignment:
        givers = [taker]
        for member in givers:
            for topic in members[member].topics:
                givers += sorted(owners.get(topic, set()).difference(givers))
        most = max(givers, key=lambda member: len(assignment[member]))
        assert len(assignment[most]) - len(assignment[taker]) <= 1, f"{most} could give to {taker}"


def moves(before: Assignment, after: Assignment) -> dict[TopicPartition, tuple[str, str]]:
    """Who gave what to whom, of those who are still there."""
    holders = {each: member for member, held in after.items() for each in held}
    return {
        each: (member, holders[each])
        for member, held in before.items()
        for each in held
        if member in after and each in holders and holders[each] != member
    }


def worth(
    partitions: Partitions,
    members: Mapping[str, MemberSubscription],
    before: Assignment,
    assignment: Assignment,
) -> tuple[int, int, int]:
    """How uneven an assignment is, how many partitions are far, and how many move; less is better.

    It is uneven by the sum of the differences of all pairs of loads (Java: getBalanceScore). A
    partition is far without a replica in the rack of its member, where racks matter.
    """
    loads = [len(held) for held in assignment.values()]
    uneven = sum(abs(one - other) for one, other in combinations(loads, 2))
    far = 0
    if racks_matter(
        {each.rack_id for each in members.values() if each.rack_id},
        [racks for topic in partitions.values() for racks in topic.values()],
    ):
        far = sum(
            members[id].rack_id not in {None, *partitions[each.topic][each.partition]}
            for id, held in assignment.items()
            for each in held
        )
    return uneven, far, len(moves(before, assignment))


member_counts = st.integers(1, 5)
partition_counts = st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 6))


@st.composite
def mixed_groups(draw: st.DrawFn) -> tuple[Partitions, dict[str, MemberSubscription]]:
    """Topics, and members that want different ones of them."""
    counts = draw(partition_counts)
    wanted = st.lists(st.sampled_from(TOPICS), unique=True)
    members = {f"m{n}": MemberSubscription(draw(wanted)) for n in range(draw(member_counts))}
    return topics(**counts), members


@st.composite
def equal_groups(draw: st.DrawFn) -> tuple[Partitions, dict[str, MemberSubscription]]:
    """Topics, and members that want all of them."""
    counts = draw(partition_counts)
    return topics(**counts), {
        f"m{n}": MemberSubscription(TOPICS) for n in range(draw(member_counts))
    }
