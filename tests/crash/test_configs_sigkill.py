"""The broker is killed while settings are altered: what got a response is there, whole."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import trio

from support.calls import create_topic
from support.client import Client, connect
from support.config_calls import BROKER, DELETE, SET, TOPIC, alter, settings_of
from support.trionet_process import trionet_broker_process

KILLS = 3
SEEDS = 20
# The keys of each resource that are altered together, and where they come from then.
KEYS = {
    (TOPIC, "t"): ("retention.ms", "segment.ms", "flush.ms"),
    (BROKER, "1"): ("log.retention.ms", "log.roll.ms", "log.flush.interval.ms"),
    (BROKER, ""): ("log.retention.bytes", "log.segment.bytes", "message.max.bytes"),
}
SOURCES = {(TOPIC, "t"): 1, (BROKER, "1"): 2, (BROKER, ""): 3}
LEAST = 2_000_000  # allowed for all of them

Settings = dict[str, str]


class Alterer:
    """Alters one resource again and again; knows what it was told, and what it asked for last."""

    def __init__(self, resource: tuple[int, str], rng: random.Random) -> None:
        self.resource = resource
        self.acknowledged: Settings = {}
        self.asked: Settings = {}
        self._chance = rng

    async def work(self, client: Client) -> None:
        """One request: some keys are set, the others deleted."""
        chosen = {key for key in KEYS[self.resource] if self._chance.random() < 0.7}
        value = str(LEAST + self._chance.randrange(10**6))
        self.asked = dict.fromkeys(chosen, value)
        operations = [
            (key, SET, value) if key in chosen else (key, DELETE, None)
            for key in KEYS[self.resource]
        ]
        assert (0, "") == await alter(client, *self.resource, *operations)
        self.acknowledged = self.asked

    async def check(self, client: Client) -> None:
        """What got a response counts, or what was asked for and not answered; never a mixture."""
        found = {
            key: setting.value
            for key, setting in (await settings_of(client, *self.resource)).items()
            # The minimum of in-sync replicas is always set for all brokers, as in Kafka (KIP-966).
            if setting.source == SOURCES[self.resource] and key != "min.insync.replicas"
        }
        assert found in (self.acknowledged, self.asked)
        self.acknowledged = self.asked = {key: value or "" for key, value in found.items()}


async def _alter(
    address: str, alterers: list[Alterer], note: Callable[[], None], *, is_first: bool
) -> None:
    """Alter settings until the broker is gone."""

    async def alter_on(alterer: Alterer) -> None:
        with contextlib.suppress(EOFError):
            async with connect(address) as client:
                while True:
                    await alterer.work(client)
                    note()

    async with connect(address) as client:
        if is_first:
            await create_topic(client, "t")
        for each in alterers:
            await each.check(client)
    async with trio.open_nursery() as nursery:
        for each in alterers:
            nursery.start_soon(alter_on, each)


async def _check(address: str, alterers: list[Alterer]) -> None:
    async with connect(address) as client:
        for each in alterers:
            await each.check(client)


def live(seed: int, folder: Path, kills: int) -> None:
    """Lives of a broker that are ended by SIGKILL, each after some responses."""
    rng = random.Random(seed)
    alterers = [Alterer(resource, random.Random(seed + 1)) for resource in KEYS]
    for life in range(kills):
        with trionet_broker_process(folder) as (address, process):
            missing = rng.choice((1, 5, 20))

            def note(kill: Callable[[], None] = process.kill) -> None:
                nonlocal missing
                missing -= 1
                if not missing:
                    kill()

            trio.run(partial(_alter, address, alterers, note, is_first=life == 0))
            assert -9 == process.wait()
    with trionet_broker_process(folder) as (address, _):
        trio.run(_check, address, alterers)


@pytest.mark.crash
@pytest.mark.parametrize("seed", range(SEEDS))
def test_altered_settings_survive_kills(seed: int, tmp_path: Path) -> None:
    live(seed, tmp_path, KILLS)


@pytest.mark.slow
def test_altered_settings_survive_a_kill(tmp_path: Path) -> None:
    live(SEEDS, tmp_path, 1)
