"""kcat, which is what many type first, against the broker."""

from __future__ import annotations

import json

from support.clients.exchange import (
    Exchange,
    every_codec,
    every_writer,
    with_and_without_idempotence,
)
from support.clients.kcat import Kcat

NAME = "kcat"
LINES = 100_000


def _kcat(exchange: Exchange) -> Kcat:
    client = exchange.client(NAME)
    assert isinstance(client, Kcat)
    return client


def test_lists_brokers_and_topics(exchange: Exchange, bootstrap: str) -> None:
    kcat = _kcat(exchange)
    topic = exchange.new_topic(7)

    listed = json.loads(kcat.run("-L", "-J"))

    assert bootstrap in [broker["name"] for broker in listed["brokers"]]
    (found,) = [each for each in listed["topics"] if each["topic"] == topic]
    assert len(found["partitions"]) == 7
    assert {each["leader"] for each in found["partitions"]} == {listed["brokers"][0]["id"]}


def test_a_hundred_thousand_lines_come_back_byte_for_byte(exchange: Exchange) -> None:
    kcat = _kcat(exchange)
    topic = exchange.new_topic()
    lines = b"".join(b"line %d of %d, nothing special\n" % (n, LINES) for n in range(LINES))

    kcat.run("-P", "-t", topic, "-p", "0", stdin=lines)
    back = kcat.run("-C", "-t", topic, "-p", "0", "-o", "beginning", "-e", "-q")

    assert lines == back


def test_reads_the_last_lines(exchange: Exchange) -> None:
    kcat = _kcat(exchange)
    topic = exchange.new_topic()
    kcat.run("-P", "-t", topic, "-p", "0", stdin=b"a\nb\nc\nd\n")

    assert kcat.run("-C", "-t", topic, "-p", "0", "-o", "-2", "-e", "-q") == b"c\nd\n"


@every_codec
@with_and_without_idempotence
def test_writes_with_every_codec(exchange: Exchange, codec: str, is_idempotent: bool) -> None:
    exchange.check_writes(NAME, codec, is_idempotent)


@every_writer
def test_reads_what_every_client_wrote(exchange: Exchange, writer: str) -> None:
    exchange.check_reads(NAME, writer)


def test_starts_at_any_offset_of_a_batch(exchange: Exchange) -> None:
    exchange.check_starts_anywhere(NAME)


def test_large_records(exchange: Exchange) -> None:
    exchange.check_large_records(NAME)


def test_big_batches(exchange: Exchange) -> None:
    exchange.check_big_batches(NAME)


def test_many_partitions(exchange: Exchange) -> None:
    exchange.check_many_partitions(NAME)


def test_log_append_time(exchange: Exchange) -> None:
    exchange.check_log_append_time(NAME)


def test_offsets_by_time(exchange: Exchange) -> None:
    exchange.check_offsets_by_time(NAME)
