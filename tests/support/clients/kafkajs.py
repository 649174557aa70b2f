"""kafkajs, the client of JavaScript, in one Node process that takes commands."""

from __future__ import annotations

import contextlib
import itertools
import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from support.cache import Unavailable, cache_folder, made_once, require_program
from support.clients.client import Admin, Arrived, Client, Record
from support.processes import first_line, running

KAFKAJS_VERSION = "2.2.4"
#: What it has without further packages.
CODECS = ("none", "gzip")
_PROGRAM = Path(__file__).with_name("kafkajs.js")
#: Two records of this size do not fit into a batch of Kafka's default limit.
_LARGE = 500_000
_FETCH_SECONDS_MAX = 120.0


def _install(folder: Path) -> None:
    npm = require_program("npm", "fetches kafkajs")
    folder.mkdir()
    command = [npm, "install", "--prefix", str(folder), "--no-audit", "--no-fund", "--silent"]
    try:
        done = subprocess.run(
            [*command, f"kafkajs@{KAFKAJS_VERSION}"],
            check=False,
            capture_output=True,
            text=True,
            timeout=_FETCH_SECONDS_MAX,
        )
    except subprocess.TimeoutExpired:
        raise Unavailable("npm could not fetch kafkajs: the registry does not answer") from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise Unavailable(f"npm could not fetch kafkajs: {said[-1] if said else '?'}")


class KafkaJs(Client, Admin):
    """kafkajs; `close` ends its process. Raises `Unavailable` without Node or the package."""

    name = "kafkajs"

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        node = require_program("node", "runs kafkajs")
        folder = made_once(cache_folder() / f"kafkajs-{KAFKAJS_VERSION}", _install)
        environment = {
            "NODE_PATH": str(folder / "node_modules"),
            "KAFKAJS_NO_PARTITIONER_WARNING": "1",
        }
        with contextlib.ExitStack() as stack:
            self._process = stack.enter_context(
                running([node, _PROGRAM, bootstrap], env=environment)
            )
            self._answer()
            self.resources = stack.pop_all()

    def ask(self, command: str, *arguments: object) -> Any:
        """What a command of the program responds; raises with the client's own error."""
        stdin = self._process.stdin
        assert stdin is not None
        stdin.write(json.dumps([command, *arguments]).encode() + b"\n")
        stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        answer = json.loads(first_line(self._process))
        if "error" in answer:
            raise RuntimeError(f"kafkajs says: {answer['error']}")
        return answer["ok"]

    def writable(self, records: Sequence[Record]) -> list[Record]:
        """It fails on headers that are null."""
        return [
            attrs.evolve(
                record, headers=tuple((name, value or b"") for name, value in record.headers)
            )
            for record in records
        ]

    def write(
        self, topic: str, records: Sequence[Record], *, codec: str, is_idempotent: bool
    ) -> list[int]:
        given = [
            {
                "key": _hex(record.key),
                "value": _hex(record.value),
                "headers": [[name, _hex(value)] for name, value in record.headers],
                "timestamp": record.timestamp,
                "partition": record.partition,
            }
            for record in records
        ]
        # One batch is made of what one call gives for a partition, however large that gets.
        large = any(len(record.value or b"") > _LARGE for record in records)
        at_once = 1 if large else len(records)
        # It tells where the records of a partition begin.
        next_offsets = {
            partition: itertools.count(base)
            for partition, base in self.ask("write", topic, given, codec, is_idempotent, at_once)
        }
        return [next(next_offsets[record.partition]) for record in records]

    def read(self, topic: str, counts: Mapping[int, int], start: int = 0) -> list[Arrived]:
        return [
            Arrived(found["offset"], _record(found), None)
            for found in self.ask("read", topic, list(counts.items()), start)
        ]

    def offset_for_time(self, topic: str, timestamp: int) -> int | None:
        """It shows the end where there is no such record, as the end is asked for then."""
        offset: int = self.ask("time", topic, timestamp)
        [[_, _, end]] = self.ask("ends", topic)
        return None if offset == end else offset

    def create_topic(self, name: str, partitions: int, config: Mapping[str, str]) -> None:
        entries = [{"name": key, "value": value} for key, value in config.items()]
        self.ask("create", name, partitions, entries)

    def delete_topic(self, name: str) -> None:
        self.ask("delete", name)

    def topics(self) -> dict[str, int]:
        return dict(self.ask("topics"))

    def topic_config(self, name: str) -> dict[str, str | None]:
        return dict(self.ask("config", name))

    def cluster(self) -> tuple[str | None, list[str]]:
        cluster_id, brokers = self.ask("cluster")
        return cluster_id, brokers


def _hex(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def _record(found: Mapping[str, Any]) -> Record:
    return Record(
        _bytes(found["key"]),
        _bytes(found["value"]),
        tuple((name, _bytes(value)) for name, value in found["headers"]),
        found["timestamp"],
        found["partition"],
    )
