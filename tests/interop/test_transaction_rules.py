"""Our broker responds to transactional requests as Apache Kafka does, line by line.

What Kafka responds is in ``transaction_rules.json``; ``test_kafka_transaction_rules.py`` says
whether that is still so.
"""

from __future__ import annotations

from typing import Final

import pytest

from support.brokers import broker_and_client
from support.transaction_rules.rules import (
    LONG,
    SCENARIOS,
    SETTINGS,
    coordinator_epoch,
    play_one,
    recorded,
)

DEVIATIONS: Final[dict[str, str]] = {}
"""Scenarios in which our broker responds otherwise, on purpose, and why."""


def test_the_file_has_all_scenarios_and_no_others() -> None:
    """A scenario is recorded before it is merged: see the package of the scenarios."""
    assert list(SCENARIOS) == list(recorded())


def _scenarios() -> list[object]:
    return [
        pytest.param(
            name,
            marks=[
                *([pytest.mark.slow] if name in LONG else []),
                *([pytest.mark.xfail(reason=DEVIATIONS[name])] if name in DEVIATIONS else []),
            ],
        )
        for name in SCENARIOS
    ]


@pytest.mark.parametrize("name", _scenarios())
async def test_our_broker_responds_as_kafka_does(name: str) -> None:
    """Each scenario has a broker of its own."""
    async with broker_and_client(SETTINGS) as (broker, _):
        address = broker.bootstrap_servers
        lines = await play_one(address, await coordinator_epoch(address), name)

    assert recorded()[name] == lines
