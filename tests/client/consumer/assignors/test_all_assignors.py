"""What holds of every assignor, whatever the racks and the subscriptions."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.assigning import check_assigned, fewer
from support.rebalancing import play_history, random_group
from trionet.client.consumer.assignors import (
    Assignor,
    CooperativeStickyAssignor,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
)

ASSIGNORS = [
    RangeAssignor(),
    RoundRobinAssignor(),
    StickyAssignor(),
    CooperativeStickyAssignor(),
]
of_every_assignor = pytest.mark.parametrize("assignor", ASSIGNORS, ids=lambda each: each.name)

randoms = st.randoms(use_true_random=False)


@of_every_assignor
@fewer
@given(randoms)
def test_each_partition_gets_one_owner(assignor: Assignor, rng: random.Random) -> None:
    group = random_group(rng, assignor)
    for member in group.members.values():
        member.owned = set()
    members = group.subscriptions()

    check_assigned(assignor, group.partitions, members, assignor.assign(group.partitions, members))


@of_every_assignor
@fewer
@given(randoms)
def test_assignment_depends_on_no_order(assignor: Assignor, rng: random.Random) -> None:
    group = random_group(rng, assignor)
    members = group.subscriptions()
    shuffled = rng.sample(list(members.items()), len(members))

    assert assignor.assign(group.partitions, members) == assignor.assign(
        dict(reversed(group.partitions.items())), dict(shuffled)
    )


@of_every_assignor
@fewer
@given(randoms)
def test_group_settles_and_stays_so(assignor: Assignor, rng: random.Random) -> None:
    random_group(rng, assignor).settle()


@of_every_assignor
@pytest.mark.parametrize("seed", range(40))
def test_group_settles_after_every_change(assignor: Assignor, seed: int) -> None:
    play_history(random.Random(seed), assignor, changes=8)
