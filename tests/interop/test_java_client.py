"""Apache Kafka's own Java client against the broker."""

from __future__ import annotations

from support.clients.exchange import (
    Exchange,
    every_codec,
    every_writer,
    with_and_without_idempotence,
)

NAME = "java"


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


def test_administers_topics(exchange: Exchange) -> None:
    exchange.check_administers(NAME, "made-by-java_client")


def test_refusals(exchange: Exchange) -> None:
    exchange.check_refusals(NAME, "refused-java_client")


def test_describes_the_cluster(exchange: Exchange, bootstrap: str) -> None:
    cluster_id, brokers = exchange.admin(NAME).cluster()

    assert cluster_id
    assert bootstrap in brokers
