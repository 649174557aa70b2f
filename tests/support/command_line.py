"""`trionet` in this process, with pipes of its own, and what a topic has afterwards."""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pytest
import trio

import trionet
from support.processes import SAME_TRIONET
from trionet import ConsumerRecord, TopicPartition
from trionet.cli.main import main
from trionet.client.admin import NewTopic

_numbers = itertools.count(1)
#: How long a command that was started may take to end.
SECONDS = 60


class Done(NamedTuple):
    """What a command has done: exit status, standard output, standard error."""

    status: int
    out: bytes
    err: str


class CommandLine:
    """Runs commands against one cluster.

    Args:
        bootstrap: where it is.
        capture: of the file descriptors.
    """

    def __init__(self, bootstrap: str, capture: pytest.CaptureFixture[bytes]) -> None:
        self.bootstrap = bootstrap
        self.capture = capture

    def run(self, command: str, *arguments: str, stdin: bytes = b"") -> Done:
        """Run a command with `-b` and some input."""
        self.capture.readouterr()
        with _stdin(stdin):
            try:
                status = main([command, *arguments, "-b", self.bootstrap])
            except SystemExit as ended:
                status = ended.code if isinstance(ended.code, int) else 1
        out, err = self.capture.readouterr()
        return Done(status, out, err.decode())

    def produce(self, *arguments: str, stdin: bytes = b"") -> Done:
        """`trionet produce` with these."""
        return self.run("produce", *arguments, stdin=stdin)

    def consume(self, *arguments: str) -> Done:
        """`trionet consume -q` with these."""
        return self.run("consume", "-q", *arguments)

    def topic(self, partitions: int = 1, **configs: str) -> str:
        """Make a topic with a new name."""
        name = f"topic-{next(_numbers)}"
        trio.run(_create, self.bootstrap, name, partitions, configs)
        return name

    def records(self, topic: str) -> list[ConsumerRecord]:
        """All that is in a topic, by partition and offset."""
        return trio.run(_records, self.bootstrap, topic)

    def write(self, topic: str, values: Sequence[bytes], partition: int = 0) -> None:
        """Write records with our producer."""
        trio.run(_write, self.bootstrap, topic, values, partition)


async def _create(bootstrap: str, name: str, partitions: int, configs: dict[str, str]) -> None:
    async with trionet.open_admin(bootstrap) as admin:
        keys = {key.replace("_", "."): value for key, value in configs.items()}
        await admin.create_topics([NewTopic(name, partitions, configs=keys)])


async def _records(bootstrap: str, topic: str) -> list[ConsumerRecord]:
    found: list[ConsumerRecord] = []
    async with trionet.open_consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        partitions = [TopicPartition(topic, each) for each in await consumer.partitions_of(topic)]
        consumer.assign(partitions)
        total = sum((await consumer.end_offsets(partitions)).values())
        while len(found) < total:
            found.append(await anext(consumer))
    return sorted(found, key=lambda each: (each.partition, each.offset))


async def _write(bootstrap: str, topic: str, values: Sequence[bytes], partition: int) -> None:
    async with trionet.open_producer(bootstrap) as producer:
        await producer.send_batch(topic, values, partition=partition)


@contextlib.contextmanager
def _stdin(data: bytes) -> Iterator[None]:
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        before = os.dup(0)
        os.dup2(file.fileno(), 0)
        try:
            yield
        finally:
            os.dup2(before, 0)
            os.close(before)


@contextlib.contextmanager
def started(
    trionet: CommandLine, *arguments: str, **pipes: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """A command with pipes, killed if it has not ended by itself."""
    command = [sys.executable, "-m", "trionet", *arguments, "-b", trionet.bootstrap]
    everything = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    environment = {**os.environ, **SAME_TRIONET}
    with subprocess.Popen(command, env=environment, **{**everything, **pipes}) as process:
        try:
            yield process
        finally:
            process.kill()


def lines_from(process: subprocess.Popen[bytes], count: int) -> list[bytes]:
    assert process.stdout is not None
    return [process.stdout.readline() for _ in range(count)]


def feed(process: subprocess.Popen[bytes], data: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(data)
    process.stdin.flush()


def ended(process: subprocess.Popen[bytes]) -> tuple[int, bytes, str]:
    out, err = process.communicate(timeout=SECONDS)
    return process.returncode, out, err.decode()
