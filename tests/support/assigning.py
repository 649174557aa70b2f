"""Groups as assignors see them, and what holds of every assignment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs
from hypothesis import settings
from hypothesis import strategies as st

from trionet.client._topic_partition import TopicPartition
from trionet.client.consumer.assignors import Assignor, MemberSubscription

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


def check_even(members: Mapping[str, MemberSubscription], assignment: Assignment) -> None:
    """Nobody could be given something of one who has two or more partitions above (KIP-54)."""
    for held in assignment.values():
        for taker, subscription in members.items():
            if len(held) - len(assignment[taker]) > 1:
                assert not {each.topic for each in held} & set(subscription.topics)


def moves(before: Assignment, after: Assignment) -> dict[TopicPartition, tuple[str, str]]:
    """Who gave what to whom, of those who are still there."""
    holders = {each: member for member, held in after.items() for each in held}
    return {
        each: (member, holders[each])
        for member, held in before.items()
        for each in held
        if member in after and each in holders and holders[each] != member
    }


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
