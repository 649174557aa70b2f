"""The assignors against Kafka's own, group by group, as ``support.assigned_by_java`` recorded them.

The range and round-robin assignments are the same. Kafka's sticky assignors improve an assignment
step by step, and ours find the best one: it is more balanced, or has as much balance and more
partitions near their members, or as much of both and at most as many moves.
"""

from __future__ import annotations

import pytest

from support.assigned_by_java import AssignedByJava, recorded
from support.assigning import worth
from trionet.client.consumer.assignors import (
    Assignor,
    CooperativeStickyAssignor,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
)


@pytest.fixture(scope="module")
def groups() -> list[AssignedByJava]:
    return recorded()


@pytest.mark.parametrize(
    "assignor", [RangeAssignor(), RoundRobinAssignor()], ids=lambda each: each.name
)
def test_assignments_are_the_same(assignor: Assignor, groups: list[AssignedByJava]) -> None:
    for group in groups:
        assert group.assignments[assignor.name] == assignor.assign(group.partitions, group.members)


@pytest.mark.parametrize(
    "assignor", [StickyAssignor(), CooperativeStickyAssignor()], ids=lambda each: each.name
)
def test_assignments_are_as_good(assignor: Assignor, groups: list[AssignedByJava]) -> None:
    alike = 0
    for group in groups:
        ours = group.group(assignor)
        while ours.rebalance():
            pass

        mine, theirs = (
            worth(group.partitions, group.members, group.owned, assignment)
            for assignment in (ours.owned(), group.assignments[assignor.name])
        )
        assert mine <= theirs
        alike += mine[:2] == theirs[:2]
    assert alike > 1_000


def test_first_assignments_are_the_same_without_racks_where_all_want_the_same(
    groups: list[AssignedByJava],
) -> None:
    """With static members the orders differ."""
    new = [
        group
        for group in groups
        if 1 == len({member.topics for member in group.members.values()})
        and not any(
            member.owned_partitions or member.rack_id or member.group_instance_id
            for member in group.members.values()
        )
    ]

    assert new
    for group in new:
        assert group.assignments["sticky"] == StickyAssignor().assign(
            group.partitions, group.members
        )
