"""The broker is killed while groups work: what it has told their members still holds."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from support.calls import create_topic
from support.client import Client, connect
from support.group_calls import commit, committed, heartbeat, join, join_alone, sync
from support.trionet_process import trionet_broker_process
from trionet.protocol import error_codes
from trionet.protocol.messages.join_group import JoinGroupResponse

KILLS = 2
SEEDS = 30
PARTITIONS = 3


class Committer:
    """The one member of a group, which commits ever higher offsets; it knows what it was told.

    Attributes:
        sent: the offsets of its last commit, by partition.
        acknowledged: those of the last one that got a response.
        told: its membership.
        is_starting: it has started anew and was not told its new id.
    """

    def __init__(self, group: str, instance: str | None, rng: random.Random) -> None:
        self.group = group
        self.instance = instance
        self.sent = dict.fromkeys(range(PARTITIONS), 0)
        self.acknowledged: dict[int, int] = {}
        self.told: JoinGroupResponse | None = None
        self.is_starting = False
        self._chance = rng

    async def run(self, address: str, note: Callable[[], None]) -> None:
        """Work until the connection ends."""
        with contextlib.suppress(EOFError):
            async with connect(address) as client:
                if self.told is not None:
                    await self.check(client)
                while True:
                    await self.work(client)
                    note()

    async def work(self, client: Client) -> None:
        if self.told is None:
            self.told = await join_alone(client, group=self.group, instance=self.instance)
        elif self.instance is not None and self._chance.random() < 0.2:
            await self.start_anew(client)
        chosen = self._chance.sample(range(PARTITIONS), self._chance.randint(1, PARTITIONS))
        offsets = {index: self.sent[index] + 1 for index in chosen}
        self.sent.update(offsets)
        codes = await commit(
            client, {"t": offsets}, group=self.group, joined=self.told, instance=self.instance
        )
        assert {0} == set(codes.values()), codes
        self.acknowledged.update(offsets)

    async def start_anew(self, client: Client) -> None:
        """Take the place of what it was before, without leaving."""
        self.is_starting = True
        self.told = await join(client, group=self.group, instance=self.instance)
        assert 0 == self.told.error_code
        self.is_starting = False

    async def check(self, client: Client) -> None:
        """It is still a member, with its assignment, and its offsets are no older than it knows."""
        assert self.told is not None
        code = await heartbeat(client, self.told, group=self.group, instance=self.instance)
        if code == error_codes.FENCED_INSTANCE_ID:
            # Else it would know its newest id.
            assert self.is_starting
            await self.start_anew(client)
            code = await heartbeat(client, self.told, group=self.group, instance=self.instance)
        assert 0 == code
        synced = await sync(client, self.told, group=self.group, instance=self.instance)
        assert (0, b"all") == (synced.error_code, synced.assignment)
        found = await committed(client, group=self.group)
        for index, offset in self.acknowledged.items():
            assert offset <= found["t", index] <= self.sent[index]
        self.sent = {index: found.get(("t", index), 0) for index in range(PARTITIONS)}


def live(seed: int, folder: Path) -> None:
    """Several lives of a broker that are ended by SIGKILL, with groups that go on."""
    rng = random.Random(seed)
    committers = [
        Committer(f"g{number}", f"i{number}" if number % 2 else None, random.Random(seed + number))
        for number in range(rng.randint(2, 6))
    ]
    for kill in range(KILLS + 1):
        with trionet_broker_process(folder, settings={}) as (address, process):
            if kill == 0:
                trio.run(_make_topic, address)
            if kill == KILLS:
                trio.run(_check, address, committers)
                continue
            missing = rng.choice((1, 10, 100))

            def note(kill: Callable[[], None] = process.kill) -> None:
                nonlocal missing
                missing -= 1
                if not missing:
                    kill()

            trio.run(_load, address, committers, note)
            assert -9 == process.wait()
    assert any(each.acknowledged for each in committers)


async def _make_topic(address: str) -> None:
    async with connect(address) as client:
        await create_topic(client, "t", PARTITIONS)


async def _load(address: str, committers: list[Committer], note: Callable[[], None]) -> None:
    async with trio.open_nursery() as nursery:
        for each in committers:
            nursery.start_soon(each.run, address, note)


async def _check(address: str, committers: list[Committer]) -> None:
    async with connect(address) as client:
        for each in committers:
            if each.told is not None:
                await each.check(client)


@pytest.mark.crash
@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_members_learned_survives_kills(seed: int, tmp_path: Path) -> None:
    live(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_what_members_learned_survives_a_few_kills(seed: int, tmp_path: Path) -> None:
    live(seed, tmp_path)
