"""Groups whose members come, go and change, rebalanced as the protocol does it."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable

import attrs

from support.assigning import (
    TOPICS,
    Assignment,
    Partitions,
    check_assigned,
)
from trionet.client._topic_partition import TopicPartition
from trionet.client.consumer.assignors import Assignor, MemberSubscription, RebalanceProtocol
from trionet.client.consumer.assignors._consumer_protocol import (
    decode_subscription,
    encode_subscription,
)

RACKS = "abc"
#: With a cooperative assignor the first assigns what is free, the second what was revoked in the
#: first, and a third would change nothing.
ROUNDS_MAX = 2


@attrs.define
class GroupMember:
    """What a member knows.

    Attributes:
        owned: the partitions that it reads.
        assigned: its last assignment; None before the first one.
        generation: the generation of its last assignment.
    """

    topics: list[str]
    rack: str | None
    instance: str | None = None
    owned: set[TopicPartition] = attrs.field(factory=set)
    assigned: list[TopicPartition] | None = None
    generation: int = -1


class Group:
    """A group of members that all have the same assignor.

    Args:
        assignor: the assignor.
        partitions: the racks of the partitions of each topic.

    Attributes:
        members: the members, keyed by id.
        generation: the current generation.
    """

    def __init__(self, assignor: Assignor, partitions: Partitions) -> None:
        self.partitions = partitions
        self.members: dict[str, GroupMember] = {}
        self._assignor = assignor
        self._is_cooperative = max(assignor.protocols) is RebalanceProtocol.COOPERATIVE
        self.generation = 0

    def rebalance(self, without_assignment: Collection[str] = ()) -> bool:
        """Have the members join, and get their assignments.

        Args:
            without_assignment: members that rejoin before they have received theirs.

        Returns:
            Whether another rebalance must follow, since members have revoked partitions.
        """
        assignment = self._assignor.assign(self.partitions, self.subscriptions())
        self._check_safe(assignment)
        self.generation += 1
        must_rejoin = False
        for id, member in self.members.items():
            if id in without_assignment:
                must_rejoin = True
                continue
            must_rejoin |= not member.owned <= set(assignment[id])
            member.owned = set(assignment[id])
            member.assigned = assignment[id]
            member.generation = self.generation
        return must_rejoin

    def settle(self) -> None:
        """Rebalance until no member has to revoke anything, and check that it stays so."""
        rounds = 1
        while self.rebalance():
            rounds += 1
            assert rounds <= ROUNDS_MAX, "the group does not settle"
        settled = self.owned()
        check_assigned(self._assignor, self.partitions, self.subscriptions(), settled)
        assert not self.rebalance()
        assert settled == self.owned(), "partitions move although nothing has changed"

    def owned(self) -> Assignment:
        return {id: sorted(member.owned) for id, member in self.members.items()}

    def subscriptions(self) -> dict[str, MemberSubscription]:
        """Have the members revoke what they must, and return what the leader gets of them."""
        for member in self.members.values():
            wanted = member.topics if self._is_cooperative else ()
            member.owned = {each for each in member.owned if each.topic in wanted}
        return {
            id: decode_subscription(
                encode_subscription(
                    MemberSubscription(
                        member.topics,
                        self._assignor.user_data(member.topics, member.assigned, member.generation),
                        sorted(member.owned),
                        member.generation,
                        member.rack,
                    )
                ),
                member.instance,
            )
            for id, member in self.members.items()
        }

    def _check_safe(self, assignment: Assignment) -> None:
        """No partition is assigned to a member while another one reads it."""
        readers = {each: id for id, member in self.members.items() for each in member.owned}
        assert set(assignment) == set(self.members)
        for id, given in assignment.items():
            for each in given:
                assert readers.setdefault(each, id) == id, f"{each} has two readers"


def random_partitions(
    rng: random.Random, topics: Collection[str] = TOPICS, most: int = 6
) -> Partitions:
    """Some topics, with replicas in a few racks."""
    return {
        topic: {number: frozenset(_some(rng, RACKS)) for number in range(rng.randint(1, most))}
        for topic in topics
        if rng.random() < 0.7
    }


def random_member(
    rng: random.Random, topics: Collection[str] = TOPICS, instance: str | None = None
) -> GroupMember:
    """A member with any subscription; in no rack, one of those, or one without replicas."""
    wanted = list(topics) if rng.random() < 0.3 else _some(rng, topics)
    return GroupMember(wanted, rng.choice((*RACKS, *RACKS, "z", None)), instance)


def random_group(
    rng: random.Random,
    assignor: Assignor,
    *,
    topics: int = 4,
    partitions: int = 6,
    members: int = 8,
) -> Group:
    """A group whose members own any partitions; with so many topics and so on, or fewer."""
    names = TOPICS[:topics]
    group = Group(assignor, random_partitions(rng, names, partitions))
    for number in range(rng.randint(1, members)):
        instance = f"s{number}" if rng.random() < 0.3 else None
        group.members[f"m{number}"] = random_member(rng, names, instance)
    share = rng.choice((0, 0.5, 1))
    for topic, numbers in group.partitions.items():
        takers = [member for member in group.members.values() if topic in member.topics]
        for number in numbers:
            if takers and rng.random() < share:
                rng.choice(takers).owned.add(TopicPartition(topic, number))
    for member in group.members.values():
        if member.owned:
            member.assigned, member.generation = sorted(member.owned), 0
    return group


def play_history(rng: random.Random, assignor: Assignor, changes: int) -> None:
    """Change a group again and again, also before it has settled; it always settles at last."""
    group = Group(assignor, random_partitions(rng))
    away: dict[str, GroupMember] = {}
    for number in range(changes):
        _change(rng, group, away, number)
        if not group.members:
            continue
        if rng.random() < 0.7:
            group.settle()
        elif rng.random() < 0.7:
            group.rebalance(_some(rng, group.members) if rng.random() < 0.3 else ())
    if group.members:
        group.settle()


def _change(rng: random.Random, group: Group, away: dict[str, GroupMember], number: int) -> None:
    members = group.members
    kind = rng.randrange(8)
    if kind < 3 or not members:
        instance = f"s{number}" if rng.random() < 0.3 else None
        members[f"m{number}"] = random_member(rng, instance=instance)
    elif kind == 3:
        del members[rng.choice(list(members))]
    elif kind == 4:
        _leave_or_return(rng, members, away)
    elif kind == 5:
        members[rng.choice(list(members))].topics = _some(rng, TOPICS)
    elif kind == 6:
        group.partitions |= random_partitions(rng, _some(rng, TOPICS))
    else:
        group.partitions.pop(rng.choice(TOPICS), None)


def _leave_or_return(
    rng: random.Random, members: dict[str, GroupMember], away: dict[str, GroupMember]
) -> None:
    """Take a member's session away, or let it return with what it remembers."""
    if away:
        id, member = away.popitem()
        members[id] = member
    else:
        id = rng.choice(list(members))
        away[id] = members.pop(id)
        away[id].owned = set()


def _some(rng: random.Random, names: Iterable[str]) -> list[str]:
    choice = sorted(names)
    return rng.sample(choice, rng.randint(0, len(choice)))
