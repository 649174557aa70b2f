"""Transactional producers and consumers of the Java client, by name, in one JVM."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from subprocess import Popen

import attrs

from support.kafka_jars import class_path, java
from support.processes import first_line, running

_SOURCE = Path(__file__).with_name("JavaTransactions.java")


class JavaError(Exception):
    """What the client raised.

    Attributes:
        name: of the exception's class, without its package.
    """

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}")
        self.name = name


@attrs.frozen
class Described:
    """What DescribeTransactions returns of a transactional id."""

    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int


class JavaTransactions:
    """Commands for the client; each raises `JavaError` with what the client has raised."""

    def __init__(self, process: Popen[bytes]) -> None:
        self._process = process

    def ask(self, *words: str) -> str:
        stdin = self._process.stdin
        assert stdin is not None
        stdin.write("\t".join(words).encode() + b"\n")
        stdin.flush()
        verdict, _, response = first_line(self._process).partition("\t")
        if verdict != "ok":
            name, _, message = response.partition("\t")
            raise JavaError(name, message)
        return response

    def create_topic(self, topic: str, partitions: int = 1) -> None:
        self.ask("create", topic, str(partitions))

    def open(self, name: str, transactional_id: str, timeout_ms: int = 60_000) -> None:
        """Create a producer and call ``initTransactions``."""
        self.ask("open", name, transactional_id, str(timeout_ms))

    def begin(self, name: str) -> None:
        self.ask("begin", name)

    def send(self, name: str, topic: str, value: str, partition: int = 0) -> int:
        """Send a record and wait for its offset."""
        return int(self.ask("send", name, topic, str(partition), value))

    def send_offsets(self, name: str, consumer: str) -> None:
        """Call ``sendOffsetsToTransaction`` with the positions and metadata of a consumer.

        One that has left is remembered as it was.
        """
        self.ask("offsets", name, consumer)

    def commit(self, name: str) -> None:
        self.ask("commit", name)

    def abort(self, name: str) -> None:
        self.ask("abort", name)

    def close(self, name: str) -> None:
        self.ask("close", name)

    def subscribe(self, name: str, group: str, topic: str) -> None:
        """Create a consumer in a group, with ``read_committed``."""
        self.ask("subscribe", name, group, topic)

    def poll(self, name: str, count: int) -> list[str]:
        """The values of the next records, until there are so many; fewer after 20 s."""
        return _words(self.ask("poll", name, str(count)))

    def leave(self, name: str) -> None:
        """Close a consumer."""
        self.ask("leave", name)

    def read(self, topic: str, *, is_committed: bool = True) -> list[str]:
        """All values of the first partition, up to the end offset of this isolation level."""
        return _words(self.ask("read", f"read_{'' if is_committed else 'un'}committed", topic))

    def committed(self, group: str, topic: str) -> int | None:
        """The offset that a group has committed for the first partition."""
        response = self.ask("committed", group, topic)
        return int(response) if response else None

    def describe(self, transactional_id: str) -> Described:
        state, *numbers = _words(self.ask("describe", transactional_id))
        return Described(state, *map(int, numbers))


@contextlib.contextmanager
def java_transactions(bootstrap: str) -> Iterator[JavaTransactions]:
    """A JVM with the client; raises `Unavailable` where there is no Java."""
    quick = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m")
    with running([java(), *quick, "-cp", class_path(), str(_SOURCE), bootstrap]) as process:
        yield JavaTransactions(process)


def _words(response: str) -> list[str]:
    return response.split("\t") if response else []
