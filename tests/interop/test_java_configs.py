"""kafka-configs.sh, Apache Kafka's own tool, as it is: settings of topics, brokers and loggers."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from support.cache import Unavailable
from support.durable import OTHER, Durable
from support.kafka_tools import CONFIGS, kafka_tool

Tool = Callable[..., str]


def _run(bootstrap: str, *arguments: str) -> str:
    try:
        return kafka_tool(CONFIGS, "--bootstrap-server", bootstrap, *arguments).decode()
    except Unavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture
def configs(bootstrap: str) -> Tool:
    """Runs kafka-configs.sh on the broker; skips where there is no Java."""

    def run(*arguments: str) -> str:
        return _run(bootstrap, *arguments)

    return run


def test_settings_of_a_topic_are_added_and_deleted(
    configs: Tool, new_topic: Callable[..., str]
) -> None:
    topic = new_topic(**{"segment.ms": "5000"})
    of_topic = ("--entity-type", "topics", "--entity-name", topic)

    said = configs(
        *("--alter", *of_topic, "--delete-config", "segment.ms"),
        *("--add-config", "retention.ms=12345678,cleanup.policy=[delete,compact]"),
    )
    described = configs("--describe", *of_topic)

    assert f"Completed updating config for topic {topic}." in said
    assert "retention.ms=12345678" in described
    assert "DYNAMIC_TOPIC_CONFIG:retention.ms=12345678" in described
    assert "cleanup.policy=delete,compact" in described
    assert "segment.ms" not in described


def test_settings_of_all_brokers_and_of_one_are_added_described_and_deleted(configs: Tool) -> None:
    of_all = ("--entity-type", "brokers", "--entity-default")
    of_one = ("--entity-type", "brokers", "--entity-name", "1")

    said = configs("--alter", *of_all, "--add-config", "message.max.bytes=2000000")
    configs("--alter", *of_one, "--add-config", "message.max.bytes=3000000,num.io.threads=9")
    for_all = configs("--describe", *of_all)
    everything = configs("--describe", "--all", *of_one)
    configs("--alter", *of_one, "--delete-config", "message.max.bytes,num.io.threads")
    configs("--alter", *of_all, "--delete-config", "message.max.bytes")

    assert "Completed updating default config for brokers in the cluster." in said
    assert re.search(r"^ *message.max.bytes=2000000 sensitive=false", for_all, re.MULTILINE)
    assert (
        "message.max.bytes=3000000 sensitive=false synonyms={DYNAMIC_BROKER_CONFIG:"
        "message.max.bytes=3000000, DYNAMIC_DEFAULT_BROKER_CONFIG:message.max.bytes=2000000,"
        " DEFAULT_CONFIG:message.max.bytes=1048588}" in everything
    )
    assert "num.io.threads=9 sensitive=false" in everything
    assert "log.retention.hours=168" in everything


def test_what_cannot_be_altered_is_an_error(configs: Tool) -> None:
    of_one = ("--entity-type", "brokers", "--entity-name", "1")

    with pytest.raises(RuntimeError, match="InvalidRequestException"):
        configs("--alter", *of_one, "--add-config", "log.dirs=/x")


@pytest.mark.skipif(bool(OTHER), reason="other brokers have other loggers")
def test_levels_of_loggers_are_set_described_and_taken_away(configs: Tool) -> None:
    of_loggers = ("--entity-type", "broker-loggers", "--entity-name", "1")

    configs("--alter", *of_loggers, "--add-config", "trionet.server=ERROR")
    described = configs("--describe", *of_loggers)
    configs("--alter", *of_loggers, "--delete-config", "trionet.server")

    assert "trionet.server=ERROR" in described


def test_what_was_altered_is_there_after_a_restart(durable: Durable) -> None:
    of_one = ("--entity-type", "brokers", "--entity-name", "1")
    with durable.running():
        _run(durable.bootstrap, "--alter", *of_one, "--add-config", "log.retention.ms=86400001")

    with durable.running():
        described = _run(durable.bootstrap, "--describe", *of_one)

    assert "log.retention.ms=86400001 sensitive=false" in described
