"""The file of which settings Apache Kafka accepts at run time is true."""

from __future__ import annotations

import pytest
import trio

from support.cache import Unavailable
from support.kafka_node import kafka_node
from support.setting_verdicts import ask, recorded


@pytest.mark.slow
def test_kafka_accepts_and_refuses_settings_as_recorded() -> None:
    """``python -m support.setting_verdicts`` in ``tests`` records another version of Kafka."""
    try:
        with kafka_node() as (address, _):
            found = trio.run(ask, address)
    except Unavailable as reason:
        pytest.skip(str(reason))

    assert recorded() == found
