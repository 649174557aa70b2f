"""Records that trionet's own codecs encode and decode, against those of every foreign client.

A gate's worth of it: `test_records_matrix.py` has every size with every codec, and a real Kafka.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.clients.by_hand import stored_codecs
from support.clients.client import Client, Record
from support.clients.corpus import corpus
from support.clients.exchange import CODECS, Exchange, check_same

OURS = "trionet"
NAMES = ("confluent-kafka", "kafka-python", "aiokafka", "java")


@pytest.fixture(scope="module")
def written(
    clients: Callable[[str], Client], new_topic: Callable[..., str]
) -> tuple[str, list[Record]]:
    """A topic in which our batches of every codec follow each other, and what is in them."""
    topic = new_topic()
    for codec in CODECS:
        clients(OURS).write(topic, corpus(), codec=codec, is_idempotent=True)
    return topic, corpus() * len(CODECS)


@pytest.mark.parametrize("reader", [OURS, *NAMES])
def test_what_we_encode_is_read_by(
    reader: str, clients: Callable[[str], Client], written: tuple[str, list[Record]]
) -> None:
    topic, records = written
    client = clients(reader)

    check_same(client, records, client.read(topic, {0: len(records)}))


@pytest.fixture(scope="module")
def recompressed(
    clients: Callable[[str], Client], new_topic: Callable[..., str]
) -> tuple[str, list[Record]]:
    """A topic whose batches the broker has compressed anew, whatever they came in."""
    topic = new_topic(**{"compression.type": "lz4"})
    for codec in CODECS:
        clients(OURS).write(topic, corpus(), codec=codec, is_idempotent=True)
    return topic, corpus() * len(CODECS)


@pytest.mark.parametrize("reader", NAMES)
def test_what_the_broker_compresses_anew_is_read_by(
    reader: str,
    clients: Callable[[str], Client],
    recompressed: tuple[str, list[Record]],
    bootstrap: str,
) -> None:
    topic, records = recompressed
    client = clients(reader)

    assert {"lz4"} == stored_codecs(bootstrap, topic, len(records))
    check_same(client, records, client.read(topic, {0: len(records)}))


@pytest.mark.parametrize("writer", NAMES)
def test_we_decode_what_is_written_by(writer: str, exchange: Exchange) -> None:
    exchange.check_reads(OURS, writer)
