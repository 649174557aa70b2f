"""The file of what Kafka's own assignors assign is true."""

from __future__ import annotations

import pytest

from support.assigned_by_java import assigned_by_java, recorded_lines
from support.cache import Unavailable


def test_kafka_assigns_as_recorded() -> None:
    """``python -m support.assigned_by_java`` in ``tests`` records another version of Kafka."""
    recorded = recorded_lines()
    try:
        found = assigned_by_java([line for line, *_ in recorded])
    except Unavailable as reason:
        pytest.skip(str(reason))

    assert recorded == found
