"""The file of what Apache Kafka responds to transactional requests is true."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import trio

from support.cache import Unavailable
from support.kafka_node import kafka_node
from support.transaction_rules.rules import SCENARIOS, SETTINGS, play_all, recorded


@pytest.fixture(scope="module")
def played() -> Iterator[dict[str, list[str]]]:
    """What a new node responds to all scenarios."""
    try:
        with kafka_node(SETTINGS) as (address, _):
            yield trio.run(play_all, address, SCENARIOS)
    except Unavailable as reason:
        pytest.skip(str(reason))


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_kafka_responds_as_recorded(name: str, played: dict[str, list[str]]) -> None:
    """``python -m support.transaction_rules`` in ``tests`` records another version of Kafka."""
    assert recorded()[name] == played[name]
