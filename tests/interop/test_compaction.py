"""Foreign clients and compacted topics."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from support.cache import Unavailable
from support.clients.client import Client, Record
from support.kafka_tools import CONSOLE_CONSUMER, CONSOLE_PRODUCER, kafka_tool
from trionet.testing import ThreadedBroker
from trionet.testing import broker as trionet_broker

#: What each says of a record without a key, or of one beside it.
REFUSALS = {
    "confluent-kafka": "INVALID_RECORD",
    "kafka-python": "one more more invalid records",
    "aiokafka": "UnknownError",  # it does not know the error code
    "java": "one more more invalid records",
    "kafkajs": "INVALID_RECORD",
}


@pytest.mark.parametrize("codec", ["none", "gzip"])
@pytest.mark.parametrize("name", REFUSALS)
def test_records_without_a_key_are_refused_with_those_beside_them(
    clients: Callable[[str], Client], new_topic: Callable[..., str], name: str, codec: str
) -> None:
    topic, client = new_topic(**{"cleanup.policy": "compact"}), clients(name)

    with pytest.raises(Exception, match=REFUSALS[name]):
        client.write(
            topic, [Record(b"k", b"v"), Record(None, b"v")], codec=codec, is_idempotent=False
        )
    client.write(topic, [Record(b"k", b"w")], codec=codec, is_idempotent=False)

    [arrived] = client.read(topic, {0: 1})
    assert (b"k", b"w") == (arrived.record.key, arrived.record.value)


@pytest.fixture
def broker() -> Iterator[ThreadedBroker]:
    with trionet_broker() as running:
        yield running


def _said(broker: ThreadedBroker, tool: str, *arguments: str, stdin: bytes = b"") -> str:
    bootstrap = ("--bootstrap-server", broker.bootstrap_servers)
    try:
        return kafka_tool(tool, *bootstrap, *arguments, stdin=stdin).decode()
    except Unavailable as reason:
        pytest.skip(str(reason))


def test_console_tools_write_a_table_and_read_what_is_left_of_it(broker: ThreadedBroker) -> None:
    broker.create_topic("table", cleanup_policy="compact")
    lines = "".join(f"k{number % 7}:value {number}\n" for number in range(700))
    keys = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
    _said(broker, CONSOLE_PRODUCER, "--topic", "table", *keys, stdin=lines.encode())
    _said(broker, CONSOLE_PRODUCER, "--topic", "table", stdin=b"a value without a key\n")

    cleaned = broker.compact("table")
    read = _said(
        broker,
        *(CONSOLE_CONSUMER, "--topic", "table", "--partition", "0", "--offset", "earliest"),
        *("--max-messages", "7", "--formatter-property", "print.key=true"),
        *("--formatter-property", "key.separator=:"),
    )

    assert (700, 7) == (cleaned[0].messages_read, cleaned[0].messages_written)
    assert "".join(f"k{number % 7}:value {number}\n" for number in range(693, 700)) == read


def test_log_dirs_tool_skips_how_a_log_is_compacted(broker: ThreadedBroker) -> None:
    broker.create_topic("table", cleanup_policy="compact")
    broker.create_topic("other", 1)
    broker.seed("table", [("k", "v")] * 20)
    broker.compact("table")

    said = _said(broker, "org.apache.kafka.tools.LogDirsCommand", "--describe")

    [found] = json.loads(said[said.index("{") :])["brokers"][0]["logDirs"]
    sizes = {each["partition"]: each["size"] for each in found["partitions"]}
    assert {"table-0", "other-0"} == set(sizes)
    assert 0 == sizes["other-0"] < sizes["table-0"]


def test_librdkafka_reads_a_table_most_of_whose_segments_are_empty(
    broker: ThreadedBroker,
) -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka")
    broker.create_topic("table", cleanup_policy="compact", segment_bytes=1048576)
    for number in range(30):
        broker.seed("table", [("k", bytes(900_000)), (f"k{number}", "v")] * (number in (0, 29)))
        broker.seed("table", [("k", bytes(900_000))])
    broker.compact("table")
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "g",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe(["table"])
    try:
        arrived = consumer.consume(3, timeout=30)
    finally:
        consumer.close()

    assert [None] * 3 == [each.error() for each in arrived]
    assert {b"k", b"k0", b"k29"} == {each.key() for each in arrived}
