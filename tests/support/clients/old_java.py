"""The Java client of any version from 0.10.2 on: what it sees when it writes and reads topics."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import attrs

from support.kafka_jars import class_path, java

_SOURCE = Path(__file__).with_name("OldJavaClient.java")
_RUN_SECONDS_MAX = 300


@attrs.define
class Seen:
    """What a client saw of one topic.

    Attributes:
        written: the offsets of its responses, by the producer's ``acks``.
        read: offset, milliseconds since the first record, key and value of each record.
        committed: where its group goes on.
        ends: the first offset and the one after the last.
        time: offset and milliseconds of the first record that is as new as the sixth.
    """

    written: dict[str, list[int]] = attrs.field(factory=dict)
    read: list[tuple[int, int, str, str]] = attrs.field(factory=list)
    committed: int = -1
    ends: tuple[int, ...] = ()
    time: tuple[int, ...] = ()


def exchange(
    bootstrap: str, version: str | None, topics: Mapping[str, str], count: int
) -> dict[str, Seen]:
    """What the client saw of each topic, whose codecs are given; `Unavailable` without it.

    Args:
        bootstrap: the broker.
        version: of the client; None for the newest.
        topics: their names and the codecs to write with.
        count: how many records to write with each `acks`.
    """
    words = [word for pair in topics.items() for word in pair]
    command = [java(), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m"]
    command += ["-cp", class_path(version), str(_SOURCE), bootstrap, *words, str(count)]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=_RUN_SECONDS_MAX
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Seen] = {}
    seen = Seen()
    for line in done.stdout.splitlines():
        word, *rest = line.split()
        if word == "topic":
            seen = found[rest[0]] = Seen()
        elif word == "written":
            seen.written.setdefault(rest[0], []).append(int(rest[1]))
        elif word == "read":
            seen.read.append((int(rest[0]), int(rest[1]), rest[2], rest[3]))
        elif word == "committed":
            seen.committed = int(rest[0])
        elif word == "ends":
            seen.ends = tuple(map(int, rest))
        elif word == "time":
            seen.time = tuple(map(int, rest))
    return found
