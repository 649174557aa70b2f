"""Jafka's Java clients against Jafka's own server and ours: they see the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.jafka import SERVERS, JavaClient
from support.jafka_exchange import PACKED
from support.jafka_wire import entry
from trionet.jafka._codec import encode_messages


@pytest.fixture(params=list(SERVERS))
def java(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[JavaClient]:
    """The Java clients of a new server, with default settings but for the flush."""
    with SERVERS[request.param](tmp_path) as (port, _), JavaClient(port) as client:
        yield client


def messages(*pairs: tuple[str, int]) -> list[list[Any]]:
    """As the Java driver prints them."""
    return [[text.encode().hex(), offset] for text, offset in pairs]


def wait_until_it_ends(java: JavaClient, topic: str, end: int) -> list[int]:
    """The offsets of a topic with a message at its end: producers hear of no success."""
    found: list[int] = []
    for _ in range(3000):
        found = java.ask("offsets", topic, 0, -1, 10)["offsets"]
        if found[:1] == [end]:
            return found
    raise AssertionError(f"{topic} never ended at {end}, but at {found}")


def test_the_scenario_of_the_reference(java: JavaClient) -> None:
    """9.2: all seven requests, with these numbers."""
    java.ask("messages", "demo", 0, 0, b"demo")
    java.ask("produce", "demo", 0, entry(PACKED, attributes=1))
    parts = [("demo", 0, encode_messages([payload])) for payload in (b"a", b"b")]
    java.ask("multiproduce", *parts[0], *parts[1])

    assert [89, 0] == wait_until_it_ends(java, "demo", 89)
    found = {
        "code": 0,
        "valid_bytes": 89,
        "messages": messages(("demo", 14), ("one", 14), ("two", 67), ("a", 78), ("b", 89)),
    }
    assert found == java.ask("fetch", "demo", 0, 0, 100_000)
    none = {"code": 3, "valid_bytes": 0, "messages": []}
    two = java.ask("multifetch", "demo", 0, 0, 100_000, "demo", 9, 0, 100_000)
    assert {"sets": [found, none]} == two
    assert 1 == java.ask("fetch", "demo", 0, 1_000_000, 100_000)["code"]
    assert {"partitions": 4} == java.ask("create", "made", 4, 1)
    assert {"deleted": 1} == java.ask("delete", "demo", "jafka")
    assert {"offset": -1} == java.ask("latest", "demo", 0)


def test_java_compresses_and_reads_compressed_messages(java: JavaClient) -> None:
    """4: all but the last message of an entry have its own offset."""
    java.ask("messages", "packed", 0, 1, b"one", b"two", b"three")
    end = 0
    for _ in range(3000):
        end = java.ask("latest", "packed", 0)["offset"]
        if end > 0:
            break

    assert (
        messages(("one", 0), ("two", 0), ("three", end))
        == (java.ask("fetch", "packed", 0, 0, 1000)["messages"])
    )


@pytest.mark.parametrize("codec", [0, 1])
def test_the_producer_without_zookeeper_writes_to_partitions(java: JavaClient, codec: int) -> None:
    """9.2: `producer.Producer` with `broker.list`."""
    texts = [f"text {number}" for number in range(10)]
    java.ask("create", "texts", 2, 1)
    java.ask("producer", "texts", 2, codec, *texts)

    found: list[str] = []
    for _ in range(3000):
        sets = java.ask("multifetch", *("texts", 0, 0, 10_000), *("texts", 1, 0, 10_000))["sets"]
        found = [bytes.fromhex(each).decode() for one in sets for each, _ in one["messages"]]
        if len(found) == len(texts):
            break
    assert sorted(texts) == sorted(found)


def test_a_reader_goes_on_where_a_fetch_ended(java: JavaClient) -> None:
    """4: the offset after each message; a partial last entry is dropped, too small is an error."""
    java.ask("messages", "steps", 0, 0, *(b"message %d" % number for number in range(20)))
    wait_until_it_ends(java, "steps", 10 * 19 + 10 * 20)
    seen: list[str] = []
    offset = 0
    while found := java.ask("fetch", "steps", 0, offset, 50)["messages"]:
        seen += [bytes.fromhex(text).decode() for text, _ in found]
        offset = found[-1][1]

    assert [f"message {number}" for number in range(20)] == seen
    assert {"error": "InvalidMessageSizeException"} == java.ask("fetch", "steps", 0, 0, 12)


def test_a_producer_that_was_rejected_can_go_on(java: JavaClient) -> None:
    """2.1: it learns of it at a later write, and connects again."""
    java.ask("messages", "again", 9, 0, b"nowhere")
    responses = [java.ask("messages", "again", 0, 0, b"x") for _ in range(500)]

    assert {"error": "RuntimeException"} in responses
    assert {} == responses[-1]
