"""`trionet produce` and `trionet consume` beside kcat: the same options, the same bytes."""

from __future__ import annotations

import json

import pytest

from support.clients.exchange import Exchange
from support.clients.kcat import Kcat
from support.command_line import CommandLine

LINES = b"".join(b"key %d:value %d\n" % (number, number) for number in range(1000))
ODD = b"a:1\n:2\nb:\nnone\n\xc3\xa9:\xc3\xbc\n"
FORMAT = r"%o %T %K %S %R|%k|%s|%h|%t|%p;"


@pytest.fixture
def kcat(exchange: Exchange) -> Kcat:
    client = exchange.client("kcat")
    assert isinstance(client, Kcat)
    return client


@pytest.fixture
def trionet(bootstrap: str, capfdbinary: pytest.CaptureFixture[bytes]) -> CommandLine:
    return CommandLine(bootstrap, capfdbinary)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("lines", [LINES, ODD], ids=["lines", "odd"])
def test_kcat_reads_what_was_produced_as_if_it_were_its_own(
    exchange: Exchange, kcat: Kcat, trionet: CommandLine, codec: str, lines: bytes
) -> None:
    topics = exchange.new_topic(), exchange.new_topic()
    options = ("-K", ":", "-Z", "-H", "a=1", "-H", "b", "-p", "0", "-z", codec)

    kcat.run("-P", "-t", topics[0], *options, stdin=lines)
    done = trionet.produce(topics[1], *options, stdin=lines)

    read = ("-C", "-p", "0", "-o", "beginning", "-e", "-q", "-f", "%o %K %S|%k|%s|%h;", "-t")
    assert 0 == done.status
    assert kcat.run(*read, topics[0]) == kcat.run(*read, topics[1])


@pytest.mark.parametrize(
    "options",
    [
        ("-e",),
        ("-e", "-K", "\\t"),
        ("-e", "-K", "=", "-Z"),
        ("-e", "-D", "\\x1e"),
        ("-e", "-f", FORMAT),
        ("-e", "-f", FORMAT, "-Z"),
        ("-e", "-o", "beginning"),
        ("-e", "-o", "-3"),
        ("-e", "-o", "2"),
        ("-c", "3"),
        ("-e", "-o", "end"),
        ("-e", "-o", "s@0"),
        ("-e", "-o", "s@0", "-o", "e@1"),
    ],
    ids=" ".join,
)
def test_it_is_consumed_as_by_kcat(
    exchange: Exchange, kcat: Kcat, trionet: CommandLine, options: tuple[str, ...]
) -> None:
    topic = exchange.new_topic()
    kcat.run("-P", "-t", topic, "-K", ":", "-Z", "-H", "a=1", "-H", "b", stdin=ODD)

    done = trionet.consume(topic, *options)

    assert 0 == done.status
    assert kcat.run("-C", "-q", "-t", topic, *options) == done.out


def test_json_is_that_of_kcat(exchange: Exchange, kcat: Kcat, trionet: CommandLine) -> None:
    topic = exchange.new_topic()
    kcat.run("-P", "-t", topic, "-K", ":", "-Z", "-H", "a=1", "-H", "b", stdin=ODD)

    ours = [json.loads(line) for line in trionet.consume(topic, "-e", "-J").out.splitlines()]

    lines = kcat.run("-C", "-q", "-e", "-t", topic, "-J").splitlines()
    theirs = [json.loads(line) for line in lines]
    assert theirs == ours
    assert [[*each] for each in theirs] == [[*each] for each in ours]


def test_groups_of_both_go_on_where_the_other_was(
    exchange: Exchange, kcat: Kcat, trionet: CommandLine
) -> None:
    topic = exchange.new_topic()
    trionet.produce(topic, stdin=LINES)
    first = trionet.consume("-G", topic, topic, "-c", "300").out

    rest = kcat.run("-G", topic, "-q", "-e", topic)

    assert LINES == first + rest
    assert b"" == trionet.consume("-G", topic, topic, "-e").out
