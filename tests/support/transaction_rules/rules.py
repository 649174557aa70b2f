"""All scenarios, and the file with what Apache Kafka responds to them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import trio

from support.client import connect
from support.eventually import eventually
from support.transaction_rules.calls import add, commit, init
from support.transaction_rules.coordinator import (
    ENDS,
    EXHAUSTION,
    IDENTITIES,
    PARTITIONS,
    SHOWN,
)
from support.transaction_rules.features import FEATURES
from support.transaction_rules.names import Names
from support.transaction_rules.offsets import OFFSETS
from support.transaction_rules.partitions import MARKED, PRODUCED, READ, TIMED_OUT
from support.transaction_rules.play import Play, Scenario, Topic, play_scenario
from trionet.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from trionet.protocol.messages.find_coordinator import FindCoordinatorRequest

RULES: Final = Path(__file__).parents[2] / "interop/transaction_rules.json"
"""Lists of lines by the names of scenarios."""

SCENARIOS: Final[Mapping[str, Scenario]] = {
    **IDENTITIES,
    **PARTITIONS,
    **ENDS,
    **SHOWN,
    **PRODUCED,
    **READ,
    **MARKED,
    **TIMED_OUT,
    **OFFSETS,
    **FEATURES,
    **EXHAUSTION,
}

LONG: Final = EXHAUSTION.keys()
"""Those that take many seconds."""

SETTINGS: Final = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
    "transaction.max.timeout.ms": "900000",
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.num.partitions": "5",
    "auto.create.topics.enable": "false",
}
"""Of the brokers: timeouts are noticed at once, and internal topics are small."""


async def coordinator_epoch(address: str) -> int:
    """What the broker writes into its markers, once it has its internal topics."""
    async with connect(address) as client:
        for key_type in (0, 1):
            request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["first"])

            async def error(request: FindCoordinatorRequest = request) -> int:
                return int((await client.call(request, 4)).coordinators[0].error_code)

            await eventually(error, lambda code: code == 0)
        play = Play(client, Names("first-", 0))
        for step in (Topic("a"), init("x"), add("x", "a-0"), commit("x", version=4)):
            await step.play(play)
        asked = [TopicRequest(name="first-a", partition_indexes=[0])]
        response = await client.call(DescribeProducersRequest(topics=asked), 0)
        [producer] = response.topics[0].partitions[0].active_producers
        return int(producer.coordinator_epoch)


async def play_all(address: str, names: Iterable[str]) -> dict[str, list[str]]:
    """The lines of these scenarios from a broker that has not seen any yet.

    One after the other, but for those that take long: Kafka verifies partitions for several Produce
    requests at a time, and gives them all the error that suits the version of the first.
    """
    epoch = await coordinator_epoch(address)
    lines: dict[str, list[str]] = {name: [] for name in names}

    async def play(number: int, name: str) -> None:
        lines[name] = await play_scenario(address, f"s{number}-", epoch, SCENARIOS[name])

    async with trio.open_nursery() as nursery:
        for number, name in enumerate(lines):
            if name in LONG:
                nursery.start_soon(play, number, name)
    for number, name in enumerate(lines):
        if name not in LONG:
            await play(number, name)
    return lines


def recorded() -> dict[str, list[str]]:
    """What Apache Kafka responds."""
    rules: dict[str, list[str]] = json.loads(RULES.read_text("utf-8"))
    return rules
