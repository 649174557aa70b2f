"""Kafka Streams with ``exactly_once_v2``, which is killed, and whose table is compacted."""

from __future__ import annotations

import contextlib
import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from subprocess import Popen

import pytest

from support.cache import Unavailable
from support.clients import java_transactions as java_module
from support.clients.java_transactions import JavaTransactions, java_transactions
from support.kafka_jars import java as java_program
from support.kafka_jars import streams_jars
from support.kafka_node import kafka_node
from support.kafka_tools import FEATURES, kafka_tool
from support.processes import running
from trionet.testing import ThreadedBroker
from trionet.testing import broker as trionet_broker

SOURCE = Path(java_module.__file__).with_name("WordCount.java")
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
}
PARTITIONS = 3
CHANGELOG = "word-count-counts-changelog"
WORDS = ("to", "be", "or", "not", "that", "is", "the", "question")
#: Lines that are written between two starts of the application, to each partition.
LINES = 40


@contextlib.contextmanager
def _broker(name: str) -> Iterator[str]:
    with contextlib.ExitStack() as stack:
        try:
            streams_jars()
            if name == "kafka":
                yield stack.enter_context(kafka_node(SETTINGS))[0]
            else:
                yield stack.enter_context(trionet_broker(SETTINGS)).bootstrap_servers
        except Unavailable as reason:
            pytest.skip(str(reason))


def application(bootstrap: str, state: Path) -> contextlib.AbstractContextManager[Popen[bytes]]:
    """The running application, which keeps its stores in a folder."""
    quick = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m")
    command = [java_program(), *quick, "-cp", ":".join(map(str, streams_jars())), str(SOURCE)]
    return running([*command, bootstrap, "word-count", "lines", "counts", str(state)])


def write_lines(java: JavaTransactions, numbers: Iterator[int]) -> list[str]:
    """Write lines of words to each partition, in a transaction; their words."""
    words = []
    java.begin("writer")
    for partition in range(PARTITIONS):
        for number in itertools.islice(numbers, LINES):
            line = [WORDS[number % step] for step in range(1, len(WORDS) + 1)]
            java.send("writer", "lines", " ".join(line), partition)
            words += line
    java.commit("writer")
    return words


@pytest.mark.parametrize("name", ["trionet", "kafka"])
@pytest.mark.parametrize("level", [2, 1], ids=lambda level: f"TV{level}")
def test_words_are_counted_exactly_once_although_the_application_is_killed(
    name: str, level: int, tmp_path: Path
) -> None:
    """It is killed in a transaction, and goes on twice: with its stores, and without them.

    Its stores come from the topic that it logs their changes to; the first start after a kill
    fences its predecessor, and the second one has to wait until the transaction times out.
    """
    numbers = itertools.count()
    words: list[str] = []
    with _broker(name) as bootstrap, java_transactions(bootstrap) as java:
        if level < 2:
            feature = f"transaction.version={level}"
            kafka_tool(FEATURES, "--bootstrap-server", bootstrap, "downgrade", "--feature", feature)
        java.create_topic("lines", PARTITIONS)
        java.create_topic("counts")
        java.open("writer", "writer")
        for state in (tmp_path / "kept", tmp_path / "kept", tmp_path / "lost"):
            with application(bootstrap, state) as process:
                words += write_lines(java, numbers)
                if state.name == "kept":
                    while len(java.read("counts")) == len(java.read("counts", is_committed=False)):
                        assert process.poll() is None, "the application has ended"
                    process.kill()
                else:
                    while len(java.read("counts")) < len(words):
                        assert process.poll() is None, "the application has ended"
        counted = java.read("counts")

    assert expected(words) == counts_of(counted)


def counts_of(counted: list[str]) -> dict[str, list[int]]:
    """The counts of each word, in the order in which they were written."""
    of_words: dict[str, list[int]] = defaultdict(list)
    for each in counted:
        word, _, count = each.partition("=")
        of_words[word].append(int(count))
    return of_words


def expected(words: list[str]) -> dict[str, list[int]]:
    return {word: [*range(1, count + 1)] for word, count in Counter(words).items()}


def compacted(broker: ThreadedBroker) -> tuple[int, int]:
    """Compact the changelog once it can be; how many records were read and written.

    The transaction in which the application was killed is aborted a few seconds later.
    """
    while True:
        cleaned = broker.compact(CHANGELOG).values()
        if any(each.bytes_read for each in cleaned):
            read = sum(each.messages_read for each in cleaned)
            return read, sum(each.messages_written for each in cleaned)


def test_table_is_restored_from_its_compacted_changelog(tmp_path: Path) -> None:
    """The application loses its store each time, and goes on counting from what compaction left.

    Its changelog holds committed and aborted transactions, since it is killed in one.
    """
    numbers = itertools.count()
    words: list[str] = []
    with contextlib.ExitStack() as stack:
        try:
            streams_jars()
            broker = stack.enter_context(trionet_broker(SETTINGS))
            java = stack.enter_context(java_transactions(broker.bootstrap_servers))
        except Unavailable as reason:
            pytest.skip(str(reason))
        java.create_topic("lines", PARTITIONS)
        java.create_topic("counts")
        java.open("writer", "writer")
        for number in range(3):
            with application(broker.bootstrap_servers, tmp_path / str(number)) as process:
                words += write_lines(java, numbers)
                while len(java.read("counts")) < len(words):
                    assert process.poll() is None, "the application has ended"
                words += write_lines(java, numbers)
                while len(java.read("counts")) == len(java.read("counts", is_committed=False)):
                    assert process.poll() is None, "the application has ended"
                process.kill()
            read, written = compacted(broker)
            assert written < read / 2
        with application(broker.bootstrap_servers, tmp_path / "last") as process:
            while len(java.read("counts")) < len(words):
                assert process.poll() is None, "the application has ended"
        counted = java.read("counts")
        broker.compact(CHANGELOG)
        table = [record.key for record in broker.records(CHANGELOG)]

    assert expected(words) == counts_of(counted)
    assert set(WORDS) == {key.decode() for key in table if key is not None}
