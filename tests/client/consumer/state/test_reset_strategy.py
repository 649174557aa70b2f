from __future__ import annotations

import pytest

from trionet.client.consumer.state._reset_strategy import EARLIEST, LATEST, NONE, ResetStrategy
from trionet.errors import ConfigError

NOW_MS = 1_700_000_000_000


@pytest.mark.parametrize(
    ("text", "strategy"),
    [
        ("earliest", EARLIEST),
        (" Latest ", LATEST),
        ("none", NONE),
        ("by_duration:PT1H", ResetStrategy("by_duration", 3_600_000)),
        ("by_duration:P2DT3M4.5S", ResetStrategy("by_duration", 172_984_500)),
        ("by_duration:p1d", ResetStrategy("by_duration", 86_400_000)),
    ],
)
def test_values_of_the_setting(text: str, strategy: ResetStrategy) -> None:
    assert strategy == ResetStrategy.parse(text)


@pytest.mark.parametrize(
    "text", ["", "first", "by_duration", "by_duration:", "by_duration:P", "by_duration:PT",
             "by_duration:1h", "by_duration:-PT1H", "by_duration:PT1H1D"],
)  # fmt: skip
def test_what_is_no_strategy_is_refused_with_those_that_are(text: str) -> None:
    with pytest.raises(ConfigError, match="earliest, latest, none, by_duration"):
        ResetStrategy.parse(text)


@pytest.mark.parametrize(
    ("strategy", "timestamp"),
    [
        (EARLIEST, -2),
        (LATEST, -1),
        (ResetStrategy("by_duration", 1000), NOW_MS - 1000),
        (ResetStrategy("by_duration", 2 * NOW_MS), 0),
    ],
)
def test_what_the_log_is_asked_for(strategy: ResetStrategy, timestamp: int) -> None:
    assert timestamp == strategy.timestamp(NOW_MS)


def test_with_none_nothing_is_asked_for() -> None:
    with pytest.raises(ValueError, match="none"):
        NONE.timestamp(NOW_MS)
