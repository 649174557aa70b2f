"""What the simulation takes for a lost record of a group of our own client, and what not."""

from __future__ import annotations

import pytest
import trio

from sim.admins import make_topics
from sim.outcome import violation_in
from sim.own_members import OwnGroup
from sim.planted import planted
from sim.world import ADDRESS, World
from trionet import open_producer
from trionet.testing import MemoryNetwork, run_virtual

RECORDS = 30
PLACE = ("synced", 0)
#: Draws that decide what each member does: it commits after each record, or does nothing between
#: them; and its user's code fails, or its block ends, after a few, with one in hand.
COMMIT_AND_FAIL, FAIL, END = 0.07, 0.2, 0.5


async def write(world: World) -> None:
    async with open_producer(ADDRESS, network=world.network) as producer:
        for number in range(RECORDS):
            value = b"w-%d" % number
            written = await producer.send(PLACE[0], value, partition=PLACE[1])
            world.partitions[PLACE].acknowledge(written.offset, [value], since=0)


def live(draw: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let one member after the other handle the records, without faults, until all are handled."""

    async def main(network: MemoryNetwork) -> None:
        world = World(0, 10_000, network)
        monkeypatch.setattr(world.rng, "random", lambda: draw)
        monkeypatch.setattr(world.rng, "randint", lambda least, _: least)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(world.run_broker)
            await make_topics(world)
            await write(world)
            group = OwnGroup(world)
            nursery.start_soon(group.take_part, "member")
            nursery.start_soon(group.audit)
            await group.settle()
            nursery.cancel_scope.cancel()
        world.disk.close()

    run_virtual(main, seed=0)


@pytest.mark.parametrize("draw", [COMMIT_AND_FAIL, FAIL, END])
def test_members_that_commit_fail_or_end_with_a_record_in_hand_lose_none(
    draw: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit of the user's own says that the record in hand is handled, whatever comes next."""
    live(draw, monkeypatch)


def test_a_commit_of_the_record_in_hand_at_the_end_of_a_block_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with planted("finish-with-block"), pytest.raises(ExceptionGroup) as caught:
        live(END, monkeypatch)
    assert "is committed, and" in violation_in(caught.value)
