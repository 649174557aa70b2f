"""Apache Kafka's own command-line tools against the broker."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from support.cache import Unavailable
from support.kafka_tools import (
    CONFIGS,
    CONSOLE_CONSUMER,
    CONSOLE_PRODUCER,
    GET_OFFSETS,
    PRODUCER_PERFORMANCE,
    TOPICS,
    kafka_tool,
)

Tool = Callable[..., str]


def _said(tool: str, *arguments: str, stdin: bytes = b"") -> str:
    try:
        return kafka_tool(tool, *arguments, stdin=stdin).decode()
    except Unavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture
def tool(bootstrap: str) -> Tool:
    """Runs one of Kafka's tools on the broker; skips where there is no Java."""

    def run(name: str, *arguments: str, stdin: bytes = b"") -> str:
        return _said(name, "--bootstrap-server", bootstrap, *arguments, stdin=stdin)

    return run


def test_topics_are_created_described_and_deleted(tool: Tool) -> None:
    made = ("--topic", "made-by-tools")

    said = tool(TOPICS, "--create", *made, "--partitions", "3", "--config", "retention.ms=12345678")
    described = tool(TOPICS, "--describe", *made)

    assert "Created topic made-by-tools." in said
    assert "PartitionCount: 3" in described
    assert "retention.ms=12345678" in described
    assert len(re.findall(r"Leader: \d+", described)) == 3

    tool(TOPICS, "--delete", *made)

    assert "made-by-tools" not in tool(TOPICS, "--list").split()


def test_configs_of_a_topic_are_described(tool: Tool, new_topic: Callable[..., str]) -> None:
    topic = new_topic(**{"cleanup.policy": "compact"})

    described = tool(CONFIGS, "--describe", "--entity-type", "topics", "--entity-name", topic)

    assert "cleanup.policy=compact" in described
    assert "DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact" in described


def test_console_producer_to_console_consumer(tool: Tool, new_topic: Callable[..., str]) -> None:
    topic = new_topic()
    lines = "".join(f"k{n}:value {n} ü\n" for n in range(200))
    keys = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")

    tool(CONSOLE_PRODUCER, "--topic", topic, *keys, stdin=lines.encode())
    read = tool(
        *(CONSOLE_CONSUMER, "--topic", topic, "--partition", "0", "--offset", "earliest"),
        *("--max-messages", "200", "--formatter-property", "print.key=true"),
        *("--formatter-property", "key.separator=:"),
    )

    assert read == lines
    offsets = tool(GET_OFFSETS, "--topic", topic, "--time", "latest")
    assert offsets.strip() == f"{topic}:0:200"


def test_producer_performance_loses_nothing(tool: Tool, new_topic: Callable[..., str]) -> None:
    topic = new_topic()

    said = tool(
        *(PRODUCER_PERFORMANCE, "--topic", topic, "--num-records", "20000"),
        *("--record-size", "500", "--throughput", "-1"),
    )

    assert re.search(r"^20000 records sent", said, re.MULTILINE), said
    assert tool(GET_OFFSETS, "--topic", topic, "--time", "latest").strip() == f"{topic}:0:20000"
    assert tool(GET_OFFSETS, "--topic", topic, "--time", "earliest").strip() == f"{topic}:0:0"
