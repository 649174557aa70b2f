"""kcat: lines of text in and out."""

from __future__ import annotations

import itertools
import re
import subprocess
from collections.abc import Mapping, Sequence

import attrs

from support.cache import require_program
from support.clients.client import PATIENCE_SECONDS, Arrived, Client, Record

# Offset, timestamp and the two lengths (-1 is null) first: keys and values may be any bytes.
_FORMAT = r"%o %T %K %S\n%k%s%h\x1e\x1e\n"
_END = b"\x1e\x1e\n"
_HEADERS = (("written-by", b"kcat"),)


class Kcat(Client):
    """The command-line client; raises `Unavailable` where it is not installed."""

    name = "kcat"

    def run(self, *arguments: str, stdin: bytes = b"") -> bytes:
        """What kcat writes to stdout; raises when it fails."""
        kcat = require_program("kcat", "a foreign client")
        command = [kcat, "-b", self.bootstrap, *arguments]
        done = subprocess.run(
            command, check=False, input=stdin, capture_output=True, timeout=3 * PATIENCE_SECONDS
        )
        if done.returncode != 0:
            raise RuntimeError(f"kcat failed: {done.stderr.decode(errors='replace')[-500:]}")
        return done.stdout

    def writable(self, records: Sequence[Record]) -> list[Record]:
        """Text without line ends; empty is null; the same headers everywhere; the time is now."""
        return [
            Record(
                _text(record.key),
                _text(record.value),
                _HEADERS,
                None,
                record.partition,
            )
            for record in records
        ]

    def shown(self, record: Record) -> Record:
        """Headers come as one text without any quoting: here one name without a value."""
        if not record.headers:
            return record
        texts = [
            name.encode() + b"=" + (b"NULL" if value is None else value)
            for name, value in record.headers
        ]
        return attrs.evolve(record, headers=((b",".join(texts).decode("latin-1"), None),))

    def write(
        self, topic: str, records: Sequence[Record], *, codec: str, is_idempotent: bool
    ) -> None:
        settings = [f"enable.idempotence={str(is_idempotent).lower()}", "linger.ms=50", "acks=all"]
        options = ["-z", codec, "-Z", "-K", "\x1f", "-H", "written-by=kcat"]
        for setting in settings:
            options += ["-X", setting]
        by_partition = sorted(records, key=lambda record: record.partition)
        for partition, group in itertools.groupby(by_partition, lambda record: record.partition):
            lines = b"".join(
                (record.key or b"") + b"\x1f" + (record.value or b"") + b"\n" for record in group
            )
            self.run("-P", "-t", topic, "-p", str(partition), *options, stdin=lines)

    def read(self, topic: str, counts: Mapping[int, int], start: int = 0) -> list[Arrived]:
        arrived: list[Arrived] = []
        for partition, count in counts.items():
            where = ["-t", topic, "-p", str(partition), "-o", str(start), "-c", str(count)]
            said = self.run("-C", "-q", "-f", _FORMAT, *where)
            arrived += _parsed(said, partition)
        return arrived

    def offset_for_time(self, topic: str, timestamp: int) -> int | None:
        said = self.run("-Q", "-t", f"{topic}:0:{timestamp}").decode()
        found = re.search(r"offset (-?\d+)", said)
        if found is None:
            raise RuntimeError(f"no offset in {said!r}")
        offset = int(found[1])
        return None if offset < 0 else offset


def _text(data: bytes | None) -> bytes | None:
    if not data:
        return None
    return data if data.isalnum() else data.hex().encode()


def _parsed(said: bytes, partition: int) -> list[Arrived]:
    arrived = []
    position = 0
    while position < len(said):
        line_end = said.index(b"\n", position)
        offset, timestamp, *lengths = map(int, said[position:line_end].split())
        position = line_end + 1
        texts: list[bytes | None] = []
        for length in lengths:
            texts.append(None if length < 0 else said[position : position + length])
            position += max(0, length)
        end = said.index(_END, position)
        headers = said[position:end].decode("latin-1")
        key, value = texts
        record = Record(key, value, ((headers, None),) if headers else (), timestamp, partition)
        arrived.append(Arrived(offset, record, None))
        position = end + len(_END)
    return arrived
