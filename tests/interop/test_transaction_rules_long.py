"""The rest of test_transaction_rules.py: what comes after the last of 32,767 epochs."""

from __future__ import annotations

import pytest
import trio

from interop.test_transaction_rules import expected, play
from support.transaction_rules.rules import LONG

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def played() -> dict[str, list[str]]:
    """What a new broker responds to these scenarios, which are played at the same time."""
    return trio.run(play, LONG)


@pytest.mark.parametrize("name", LONG)
def test_our_broker_responds_as_kafka_does(name: str, played: dict[str, list[str]]) -> None:
    assert expected(name) == played[name]
