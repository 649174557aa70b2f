"""What Kafka's own assignors assign, group by group.

``assigned_by_java.json``, beside the tests of the assignors, has a list per group: the group as a
line of text, and the results of ``JavaAssignors.java``. ``python -m support.assigned_by_java`` in
``tests`` writes it.

The line has the topics, such as ``t0:ab,,c`` for a partition with replicas in the racks a and b,
one in none, and one in c; then ``|`` and the members, such as ``m0/s0/a/t0,t1/t0-2/7``: id,
instance id, rack, topics, owned partitions and generation.
"""

from __future__ import annotations

import json
import random
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs

from support.assigning import TOPICS, Assignment, Partitions
from support.kafka_jars import KAFKA_VERSION, class_path, java
from support.rebalancing import Group, GroupMember
from trionet.client._topic_partition import TopicPartition
from trionet.client.consumer.assignors import Assignor, MemberSubscription

NAMES: Final = ("range", "roundrobin", "sticky", "cooperative-sticky")
GROUPS: Final = 1_500
_GENERATION: Final = 7  # In which the partitions of the groups were assigned.
_TABLE: Final = Path(__file__).parents[1] / "client/consumer/assignors/assigned_by_java.json"
_SOURCE: Final = Path(__file__).parent / "clients" / "JavaAssignors.java"

Members = dict[str, MemberSubscription]


@attrs.frozen
class AssignedByJava:
    """A group, and what Java's assignors assign to its members.

    Attributes:
        assignments: the assignments, keyed by the name of the assignor; with cooperative-sticky the
            one after the last round.
        rounds: how many rounds cooperative-sticky took to settle; None if it did not.
    """

    partitions: Partitions
    members: Members
    assignments: dict[str, Assignment]
    rounds: int | None

    @property
    def owned(self) -> Assignment:
        return {id: list(member.owned_partitions) for id, member in self.members.items()}

    def group(self, assignor: Assignor) -> Group:
        """The group with an assignor of ours, before the rebalance."""
        group = Group(assignor, self.partitions)
        for id, member in self.members.items():
            held = list(member.owned_partitions)
            group.members[id] = GroupMember(
                list(member.topics),
                member.rack_id,
                member.group_instance_id,
                set(held),
                held or None,
                member.generation_id,
            )
        group.generation = _GENERATION
        return group


def recorded() -> list[AssignedByJava]:
    """The groups of the file."""
    return [_results(*_parsed(line), results) for line, *results in recorded_lines()]


def recorded_lines() -> list[list[str]]:
    """The groups as they stand in the file: each as text, and the results as text."""
    lines: list[list[str]] = json.loads(_TABLE.read_text("utf-8"))["groups"]
    return lines


def assigned_by_java(lines: Sequence[str]) -> list[list[str]]:
    """The results of Kafka's assignors; raises `Unavailable` where there is no Java."""
    with tempfile.TemporaryDirectory() as folder:
        groups, results = Path(folder, "groups"), Path(folder, "results")
        groups.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        command = [java(), "-cp", class_path(), str(_SOURCE), str(groups), str(results)]
        subprocess.run(command, check=True, capture_output=True)
        return [
            [line, *found.split("\t")]
            for line, found in zip(lines, results.read_text("utf-8").splitlines(), strict=True)
        ]


# Lines of text.


def _line(partitions: Partitions, members: Members) -> str:
    topics = " ".join(
        f"{name}:{','.join(''.join(sorted(racks)) for racks in numbers.values())}"
        for name, numbers in partitions.items()
    )
    return f"{topics}|{' '.join(_member_line(*each) for each in members.items())}"


def _member_line(id: str, member: MemberSubscription) -> str:
    fields = (
        id,
        member.group_instance_id or "",
        member.rack_id or "",
        ",".join(member.topics),
        ",".join(map(str, member.owned_partitions)),
        str(member.generation_id),
    )
    return "/".join(fields)


def _parsed(line: str) -> tuple[Partitions, Members]:
    topics, members = line.split("|")
    return (
        {
            name: dict(enumerate(map(frozenset, racks.split(","))))
            for name, racks in (topic.split(":") for topic in topics.split(" "))
        },
        dict(map(_parsed_member, members.split(" "))),
    )


def _parsed_member(text: str) -> tuple[str, MemberSubscription]:
    id, instance, rack, topics, owned, generation = text.split("/")
    pairs = (each.split("-") for each in _words(owned))
    held = [TopicPartition(topic, int(number)) for topic, number in pairs]
    return id, MemberSubscription(
        _words(topics), None, held, int(generation), rack or None, instance or None
    )


def _words(text: str) -> list[str]:
    return text.split(",") if text else []


def _results(partitions: Partitions, members: Members, results: Sequence[str]) -> AssignedByJava:
    *assigned, rounds = results
    return AssignedByJava(
        partitions,
        members,
        {
            name: _assignment(partitions, members, letters)
            for name, letters in zip(NAMES, assigned, strict=True)
        },
        None if rounds == "-" else int(rounds),
    )


def _assignment(partitions: Partitions, members: Mapping[str, object], letters: str) -> Assignment:
    ids = {chr(ord("a") + place): id for place, id in enumerate(members)}
    found: Assignment = {id: [] for id in members}
    for each, letter in zip(_in_order(partitions), letters, strict=True):
        if letter in ids:
            found[ids[letter]].append(each)
    return {id: sorted(held) for id, held in found.items()}


def _in_order(partitions: Partitions) -> list[TopicPartition]:
    return [TopicPartition(topic, n) for topic, numbers in partitions.items() for n in numbers]


# Groups.


def _random_group(rng: random.Random) -> tuple[Partitions, Members]:
    topics = TOPICS[: rng.randint(1, len(TOPICS))]
    racks = rng.choice(("", "ab", "abc", "abc"))
    spread = rng.randint(1, len(racks)) if racks else 0
    partitions = {
        topic: {n: frozenset(_some(rng, racks, spread)) for n in range(rng.randint(1, 8))}
        for topic in topics
    }
    members: Members = {}
    has_equal_topics = rng.random() < 0.4
    for number in range(rng.randint(1, 7)):
        # Kafka's sticky assignors give partitions also to members without topics (4.3.1).
        wanted = topics if has_equal_topics else _some(rng, topics, rng.randint(1, len(topics)))
        rack = rng.choice((*racks, *racks, "z", None)) if racks else None
        instance = f"s{rng.randint(0, 9)}{number}" if rng.random() < 0.2 else None
        members[f"m{number}"] = MemberSubscription(wanted, rack_id=rack, group_instance_id=instance)
    return partitions, _owning(rng, partitions, members)


def _owning(rng: random.Random, partitions: Partitions, members: Members) -> Members:
    """The members with partitions that they own: none, any, or as many as the others."""
    share = rng.choice((0, 0.5, 0.9, 1))
    is_even = rng.random() < 0.5
    owned: dict[str, list[TopicPartition]] = {id: [] for id in members}
    for each in _in_order(partitions):
        takers = [id for id, member in members.items() if each.topic in member.topics]
        if takers and rng.random() < share:
            rng.shuffle(takers)
            taker = min(takers, key=lambda id: len(owned[id])) if is_even else takers[0]
            owned[taker].append(each)
    return {
        id: attrs.evolve(
            member, owned_partitions=owned[id], generation_id=_GENERATION if owned[id] else -1
        )
        for id, member in members.items()
    }


def _some(rng: random.Random, names: Sequence[str], number: int) -> list[str]:
    return sorted(rng.sample(names, number))


def _written(groups: Iterable[list[str]]) -> str:
    lines = ",\n".join(f"  {json.dumps(group)}" for group in groups)
    return f'{{\n "kafka": "{KAFKA_VERSION}",\n "groups": [\n{lines}\n ]\n}}\n'


def main() -> None:
    """Replace the file."""
    rng = random.Random(0)
    lines = [_line(*_random_group(rng)) for _ in range(GROUPS)]
    _TABLE.write_text(_written(assigned_by_java(lines)), "utf-8")


if __name__ == "__main__":
    main()
