"""The layers of a broker's settings."""

from __future__ import annotations

import logging

import pytest

from trionet.broker.config._broker_config import BrokerConfig
from trionet.broker.config._dynamic_config import DynamicConfig
from trionet.errors import ConfigError

STATIC = BrokerConfig.from_settings({"message.max.bytes": 1, "num.io.threads": 4})


def test_without_changes_what_counts_is_what_the_broker_was_started_with() -> None:
    assert STATIC is DynamicConfig(STATIC).current


def test_one_brokers_setting_wins_over_that_of_all_and_that_over_the_static_one() -> None:
    config = DynamicConfig(
        STATIC,
        cluster={"message.max.bytes": 2, "log.segment.bytes": 2_000_000},
        own={"message.max.bytes": 3},
    )

    assert 3 == config.current.integer("message.max.bytes")
    assert 2_000_000 == config.current.integer("log.segment.bytes")
    assert 4 == config.current.integer("num.io.threads")
    assert 1 == config.static.integer("message.max.bytes")


def test_settings_that_do_not_fit_each_other_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"log\.retention\.ms must be -1 or at least 1"):
        DynamicConfig(STATIC, cluster={"log.retention.ms": 0})


def test_what_was_altered_is_restored_from_its_texts() -> None:
    config = DynamicConfig.restore(
        STATIC, {"message.max.bytes": "2", "log.retention.ms": "9"}, {"message.max.bytes": "3"}
    )

    assert {"message.max.bytes": 2, "log.retention.ms": 9} == config.cluster
    assert {"message.max.bytes": 3} == config.own


def test_what_cannot_be_used_any_more_is_reported_and_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    gone = "listener.name.gone.max.connections"
    with caplog.at_level(logging.WARNING, "trionet.broker"):
        config = DynamicConfig.restore(STATIC, {"log.retention.ms": "9"}, {gone: "5"})

    assert {} == config.own
    assert 9 == config.current.integer("log.retention.ms")
    assert f"ignoring an altered setting: {gone} does not name an existing listener" in caplog.text


def test_if_they_do_not_fit_each_other_all_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "trionet.broker"):
        config = DynamicConfig.restore(
            STATIC, {"log.retention.ms": "0"}, {"message.max.bytes": "9"}
        )

    assert STATIC is config.current
    assert "ignoring all altered settings: log.retention.ms" in caplog.text
