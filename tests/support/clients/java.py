"""Apache Kafka's own Java client, in one JVM that takes commands."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from support.clients.client import Admin, Arrived, Client, Record
from support.kafka_jars import class_path, java
from support.processes import first_line, running

_SOURCE = Path(__file__).with_name("JavaClient.java")


class Java(Client, Admin):
    """The Java client; `close` ends its JVM. Raises `Unavailable` where there is no Java."""

    name = "java"

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        with contextlib.ExitStack() as stack:
            self._folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            quick = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m")
            command = [java(), *quick, "-cp", class_path(), str(_SOURCE), bootstrap]
            self._process = stack.enter_context(running(command))
            self.resources = stack.pop_all()

    def _ask(self, *words: str) -> str:
        stdin = self._process.stdin
        assert stdin is not None
        stdin.write("\t".join(words).encode() + b"\n")
        stdin.flush()
        verdict, _, answer = first_line(self._process).partition("\t")
        if verdict != "ok":
            raise RuntimeError(f"the Java client says: {answer}")
        return answer

    def write(
        self, topic: str, records: Sequence[Record], *, codec: str, is_idempotent: bool
    ) -> list[int]:
        file = self._folder / "records"
        file.write_text("".join(map(_line, records)))
        answer = self._ask("write", topic, codec, str(is_idempotent).lower(), str(file))
        return [int(word) for word in answer.split()]

    def read(self, topic: str, counts: Mapping[int, int], start: int = 0) -> list[Arrived]:
        file = self._folder / "records"
        wanted = ",".join(f"{partition}={count}" for partition, count in counts.items())
        self._ask("read", topic, str(start), wanted, str(file))
        return [_arrived(line) for line in file.read_text().splitlines()]

    def offset_for_time(self, topic: str, timestamp: int) -> int | None:
        answer = self._ask("time", topic, str(timestamp))
        return None if answer == "-" else int(answer)

    def create_topic(self, name: str, partitions: int, config: Mapping[str, str]) -> None:
        pairs = ",".join(f"{key}={value}" for key, value in config.items())
        self._ask("create", name, str(partitions), pairs)

    def delete_topic(self, name: str) -> None:
        self._ask("delete", name)

    def topics(self) -> dict[str, int]:
        pairs = (word.rpartition("=") for word in self._ask("topics").split("\t") if word)
        return {name: int(count) for name, _, count in pairs}

    def topic_config(self, name: str) -> dict[str, str | None]:
        pairs = (word.partition("=") for word in self._ask("config", name).split("\t"))
        return {key: value for key, _, value in pairs}

    def cluster(self) -> tuple[str | None, list[str]]:
        cluster_id, *brokers = self._ask("cluster").split("\t")
        return cluster_id, brokers


def _hex(data: bytes | None) -> str:
    return "-" if data is None else data.hex()


def _bytes(text: str) -> bytes | None:
    return None if text == "-" else bytes.fromhex(text)


def _line(record: Record) -> str:
    timestamp = "-" if record.timestamp is None else str(record.timestamp)
    headers = ",".join(f"{name.encode().hex()}={_hex(value)}" for name, value in record.headers)
    fields = (
        str(record.partition),
        "-",
        timestamp,
        "create",
        _hex(record.key),
        _hex(record.value),
        headers,
    )
    return "\t".join(fields) + "\n"


def _arrived(line: str) -> Arrived:
    partition, offset, timestamp, kind, key, value, headers = line.split("\t")
    pairs = (pair.split("=") for pair in headers.split(",") if pair)
    record = Record(
        _bytes(key),
        _bytes(value),
        tuple((bytes.fromhex(name).decode(), _bytes(text)) for name, text in pairs),
        int(timestamp),
        int(partition),
    )
    return Arrived(int(offset), record, kind == "log")
