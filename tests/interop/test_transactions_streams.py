"""Kafka Streams with ``exactly_once_v2`` counts words while it is killed."""

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
from trionet.testing import broker as trionet_broker

SOURCE = Path(java_module.__file__).with_name("WordCount.java")
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
}
PARTITIONS = 3
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

    of_words: dict[str, list[int]] = defaultdict(list)
    for each in counted:
        word, _, count = each.partition("=")
        of_words[word].append(int(count))
    assert {word: [*range(1, count + 1)] for word, count in Counter(words).items()} == of_words
