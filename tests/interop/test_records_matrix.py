"""Records of every size with every codec: ours read by all, all read by us, and a real Kafka."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from support.cache import Unavailable
from support.clients.by_hand import (
    CODEC_NUMBERS,
    ByHand,
    fetch_by_hand,
    produce_by_hand,
    stored_codecs,
)
from support.clients.client import Client, Record
from support.clients.corpus import corpus, sized_records
from support.clients.exchange import CODECS, Exchange, check_same, every_codec
from support.kafka_node import kafka_node
from trionet.protocol.records._records import encode_batch
from trionet.testing._wire_peer import raw_peer

OURS = "trionet"
NAMES = ("confluent-kafka", "kafka-python", "aiokafka", "java")
MEGABYTE = 1 << 20
SIZES = (0, 1, 63, 64, 127, 128, 8_191, 8_192, 16_383, 16_384, 65_536, MEGABYTE)
# Kept by all clients' producers below their limits, with a key and headers.
WRITABLE_SIZES = (*SIZES[:-1], 950_000)
LARGE_BATCHES = {"max.message.bytes": str(4 * MEGABYTE)}
# The base offset and the leader's epoch are the server's, and outside of the checksum.
SERVERS: Final = 16

every_reader = pytest.mark.parametrize("reader", [OURS, *NAMES])
every_writer = pytest.mark.parametrize("writer", NAMES)


@every_reader
@every_codec
def test_every_size_that_we_encode_is_read_by(
    reader: str, codec: str, clients: Callable[[str], Client], new_topic: Callable[..., str]
) -> None:
    topic = new_topic(**LARGE_BATCHES)
    records = sized_records(SIZES)
    clients(OURS).write(topic, records, codec=codec, is_idempotent=True)

    check_same(clients(reader), records, clients(reader).read(topic, {0: len(records)}))


@pytest.fixture(scope="module")
def recompressed(
    clients: Callable[[str], Client], new_topic: Callable[..., str]
) -> Callable[[str], tuple[str, list[Record]]]:
    """Gives a topic with this codec and level, and what came to it in every codec."""

    @functools.cache
    def make(wanted: str) -> tuple[str, list[Record]]:
        codec, _, level = wanted.partition(" ")
        levels = {f"compression.{codec}.level": level} if level else {}
        topic = new_topic(**LARGE_BATCHES, **{"compression.type": codec}, **levels)
        records = [*corpus(), *sized_records(SIZES)]
        for codec in CODECS:
            clients(OURS).write(topic, records, codec=codec, is_idempotent=True)
        return topic, records * len(CODECS)

    return make


@every_reader
@pytest.mark.parametrize("wanted", ["uncompressed", *CODECS[1:], "lz4 17", "zstd 19"])
def test_every_size_that_the_broker_compresses_anew_is_read_by(
    reader: str,
    wanted: str,
    clients: Callable[[str], Client],
    recompressed: Callable[[str], tuple[str, list[Record]]],
    bootstrap: str,
) -> None:
    topic, records = recompressed(wanted)

    stored = {"uncompressed": "none", "lz4 17": "lz4", "zstd 19": "zstd"}.get(wanted, wanted)
    assert {stored} == stored_codecs(bootstrap, topic, len(records))
    check_same(clients(reader), records, clients(reader).read(topic, {0: len(records)}))


@every_writer
@every_codec
def test_every_size_is_decoded_when_written_by(
    writer: str, codec: str, clients: Callable[[str], Client], new_topic: Callable[..., str]
) -> None:
    topic = new_topic(**LARGE_BATCHES)
    records = clients(writer).writable(sized_records(WRITABLE_SIZES))
    clients(writer).write(topic, records, codec=codec, is_idempotent=True)

    check_same(clients(OURS), records, clients(OURS).read(topic, {0: len(records)}))


def test_we_do_what_every_client_does(exchange: Exchange) -> None:
    exchange.check_starts_anywhere(OURS)
    exchange.check_big_batches(OURS)
    exchange.check_many_partitions(OURS)
    exchange.check_log_append_time(OURS)
    exchange.check_offsets_by_time(OURS)


@pytest.fixture(scope="module")
def kafka() -> Iterator[tuple[Exchange, str]]:
    """A real Kafka, with our client, the Java client and librdkafka."""
    pytest.importorskip("confluent_kafka")
    from support.clients.confluent import Confluent
    from support.clients.java import Java

    numbers = itertools.count()
    made: dict[str, Any] = {}
    try:
        with kafka_node() as (bootstrap, _):
            made |= {OURS: ByHand(bootstrap), "confluent-kafka": Confluent(bootstrap)}
            made["java"] = Java(bootstrap)

            def new_topic(partitions: int = 1, /, **config: str) -> str:
                name = f"records-{next(numbers)}"
                made["java"].create_topic(name, partitions, config)
                return name

            try:
                # Its producer tries again until the new Kafka gives out ids; ours does not.
                first = new_topic()
                made["java"].write(first, corpus()[:1], codec="none", is_idempotent=True)
                yield Exchange(made.__getitem__, new_topic), bootstrap
            finally:
                made["java"].close()
    except Unavailable as reason:
        pytest.skip(str(reason))


@every_codec
def test_kafka_takes_our_batches_and_gives_the_same_records(
    codec: str, kafka: tuple[Exchange, str]
) -> None:
    exchange, _ = kafka
    topic = exchange.new_topic(**LARGE_BATCHES)
    records = [*corpus(), *sized_records(SIZES)]
    ours = exchange.client(OURS)
    for is_idempotent in (False, True):
        ours.write(topic, records, codec=codec, is_idempotent=is_idempotent)
    twice = records * 2

    for reader in (OURS, "confluent-kafka", "java"):
        client = exchange.client(reader)
        check_same(client, twice, client.read(topic, {0: len(twice)}))


@every_codec
def test_kafka_keeps_our_batches_byte_for_byte(codec: str, kafka: tuple[Exchange, str]) -> None:
    exchange, bootstrap = kafka
    topic = exchange.new_topic()
    rows = [(each.timestamp or 0, each.key, each.value, each.headers) for each in corpus()]
    batch = encode_batch(rows, codec=CODEC_NUMBERS[codec])
    with raw_peer(bootstrap) as peer:
        assert produce_by_hand(peer, topic, 0, batch) == 0
        assert produce_by_hand(peer, topic, 0, batch) == len(rows)
        data = fetch_by_hand(peer, topic, 0, len(rows))

    assert data[SERVERS : len(batch)] == batch[SERVERS:]


def test_kafka_looks_at_what_it_takes(kafka: tuple[Exchange, str]) -> None:
    """Or else nothing would follow from its taking our batches."""
    exchange, bootstrap = kafka
    topic = exchange.new_topic()
    batch = bytearray(encode_batch([(corpus()[0].timestamp or 0, None, b"value", ())]))
    batch[-2] ^= 1
    with raw_peer(bootstrap) as peer, pytest.raises(RuntimeError, match="CORRUPT_MESSAGE"):
        produce_by_hand(peer, topic, 0, bytes(batch))


@every_codec
def test_we_decode_what_kafka_keeps_of_others(codec: str, kafka: tuple[Exchange, str]) -> None:
    exchange, _ = kafka
    for writer in ("confluent-kafka", "java"):
        topic, records = exchange.written(writer, codec, is_idempotent=True)
        ours = exchange.client(OURS)
        check_same(ours, records, ours.read(topic, {0: len(records)}))
