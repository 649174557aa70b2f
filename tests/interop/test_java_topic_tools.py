"""Apache Kafka's own tools administer topics: more partitions, fewer records, sizes, throughput."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from support.cache import Unavailable
from support.clients.client import Client, Record
from support.durable import Durable
from support.kafka_tools import (
    CONSUMER_PERFORMANCE,
    DELETE_RECORDS,
    GET_OFFSETS,
    LOG_DIRS,
    PRODUCER_PERFORMANCE,
    TOPICS,
    kafka_tool,
)

Tool = Callable[..., str]


def run_tool(bootstrap: str, name: str, *arguments: str) -> str:
    """What a tool says; skips where there is no Java."""
    try:
        return kafka_tool(name, "--bootstrap-server", bootstrap, *arguments).decode()
    except Unavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture
def tool(bootstrap: str) -> Tool:
    return lambda name, *arguments: run_tool(bootstrap, name, *arguments)


def offsets(tool: Tool, topic: str, when: str) -> list[str]:
    """Lines of topic, partition and offset."""
    return sorted(tool(GET_OFFSETS, "--topic", topic, "--time", when).split())


def test_kafka_topics_from_creation_to_deletion(tool: Tool) -> None:
    made = ("--topic", "grown-by-tools")
    tool(TOPICS, "--create", *made, "--partitions", "2", "--config", "segment.ms=1234567")

    tool(TOPICS, "--alter", *made, "--partitions", "5")

    assert "grown-by-tools" in tool(TOPICS, "--list").split()
    described = tool(TOPICS, "--describe", *made)
    assert "PartitionCount: 5" in described
    assert "segment.ms=1234567" in described
    assert ["0", "1", "2", "3", "4"] == re.findall(r"Partition: (\d+)", described)
    assert 5 == len(re.findall(r"Leader: \d+\tReplicas: \d+\tIsr: \d+", described))
    with pytest.raises(RuntimeError, match="would not be"):
        tool(TOPICS, "--alter", *made, "--partitions", "4")

    tool(TOPICS, "--delete", *made)

    assert "grown-by-tools" not in tool(TOPICS, "--list").split()


def test_kafka_delete_records(
    tool: Tool,
    new_topic: Callable[..., str],
    clients: Callable[[str], Client],
    tmp_path: Path,
) -> None:
    topic = new_topic(2)
    records = [Record(None, b"v", partition=partition) for partition in range(2) for _ in range(9)]
    clients("confluent-kafka").write(topic, records, codec="none", is_idempotent=False)
    wanted = tmp_path / "offsets.json"
    partitions = [
        {"topic": topic, "partition": 0, "offset": 4},
        {"topic": topic, "partition": 1, "offset": -1},
    ]
    wanted.write_text(json.dumps({"version": 1, "partitions": partitions}))

    said = tool(DELETE_RECORDS, "--offset-json-file", str(wanted))

    assert f"partition: {topic}-0\tlow_watermark: 4" in said
    assert f"partition: {topic}-1\tlow_watermark: 9" in said
    assert [f"{topic}:0:4", f"{topic}:1:9"] == offsets(tool, topic, "earliest")
    assert [f"{topic}:0:9", f"{topic}:1:9"] == offsets(tool, topic, "latest")


def test_kafka_log_dirs(durable: Durable) -> None:
    bootstrap = durable.bootstrap
    with durable.running():
        run_tool(bootstrap, TOPICS, "--create", "--topic", "sized", "--partitions", "2")
        run_tool(
            bootstrap,
            *(PRODUCER_PERFORMANCE, "--topic", "sized", "--num-records", "1000"),
            *("--record-size", "100", "--throughput", "-1"),
        )

        said = run_tool(bootstrap, LOG_DIRS, "--describe", "--topic-list", "sized")

        [description] = [line for line in said.splitlines() if line.startswith("{")]
        [broker] = json.loads(description)["brokers"]
        [folder] = broker["logDirs"]
        sizes = {each["partition"]: each["size"] for each in folder["partitions"]}
        assert folder["error"] is None
        assert {"sized-0", "sized-1"} == set(sizes)
        assert sum(sizes.values()) == sum(
            path.stat().st_size
            for partition in range(2)
            for path in (Path(folder["logDir"]) / f"sized-{partition}").glob("*.log")
        )
        assert 100_000 < sum(sizes.values())


def test_producer_and_consumer_performance(tool: Tool, new_topic: Callable[..., str]) -> None:
    topic = new_topic(3)

    produced = tool(
        *(PRODUCER_PERFORMANCE, "--topic", topic, "--num-records", "50000"),
        *("--record-size", "200", "--throughput", "-1"),
    )
    consumed = tool(CONSUMER_PERFORMANCE, "--topic", topic, "--num-records", "50000")

    assert re.search(r"^50000 records sent", produced, re.MULTILINE), produced
    header, figures = consumed.strip().splitlines()[-2:]
    columns = dict(zip(header.split(", "), figures.split(", "), strict=True))
    assert 50_000 <= int(next(v for k, v in columns.items() if k.startswith("data.consumed.in.n")))
