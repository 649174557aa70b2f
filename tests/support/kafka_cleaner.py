"""Kafka's own cleaner, in one JVM that cleans many logs."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import attrs

from support.compaction_model import (
    Aborted,
    KeptBatch,
    KeptRecord,
    ModelSegment,
    Round,
)
from support.kafka_jars import class_path, java
from support.processes import first_line, running

_SOURCE = Path(__file__).parent / "clients" / "KafkaCleaner.java"
_QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx1g")

Words = Iterator[list[str]]


@attrs.frozen
class CleanedByKafka:
    """What a log holds after it, and what Kafka knows of its producers."""

    segments: list[ModelSegment]
    producers: dict[int, tuple[int, int]]
    end_offset: int
    nanoseconds: int


class KafkaCleaner:
    """A running JVM.

    Attributes:
        pid: its process id.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.pid = process.pid

    def clean(
        self,
        folder: Path,
        end_offset: int,
        told: Round,
        settings: dict[str, int],
        result: Path | None = None,
    ) -> CleanedByKafka:
        """Let Kafka open the log in a folder, clean and close it.

        Args:
            folder: the partition's; its name ends with its number.
            end_offset: the end of the log, up to which it is all right.
            told: what to clean; Kafka takes the producers from the folder.
            settings: of the topic, by Kafka's names.
            result: a file to use; None if what is left is not wanted.
        """
        words: list[object] = [folder, result or "-", end_offset]
        words += [told.first_dirty_offset, told.end_offset, told.keys_max, told.now_ms]
        words.append(f"delete.retention.ms={told.delete_retention_ms}")
        words += [f"{name}={value}" for name, value in settings.items()]
        stdin = self._process.stdin
        assert stdin is not None
        stdin.write("\t".join(["clean", *map(str, words)]).encode() + b"\n")
        stdin.flush()
        verdict, *rest = first_line(self._process).split("\t")
        if verdict != "ok":
            raise RuntimeError(f"Kafka's cleaner says: {' '.join(rest)}")
        lines = [] if result is None else result.read_text().splitlines()
        producers = {}
        for kind, *numbers in (line.split(" ") for line in lines if line.startswith("producer ")):
            assert kind == "producer"
            producer_id, last_offset, epoch = map(int, numbers)
            producers[producer_id] = last_offset, epoch
        return CleanedByKafka(_segments(lines), producers, int(rest[0]), int(rest[1]))


@contextlib.contextmanager
def kafka_cleaner(options: tuple[str, ...] = _QUICK) -> Iterator[KafkaCleaner]:
    """Start a JVM that ends with the block; raises `Unavailable` where there is no Java.

    Args:
        options: of the JVM.
    """
    with running([java(), *options, "-cp", class_path(), str(_SOURCE)]) as process:
        yield KafkaCleaner(process)


def _segments(lines: list[str]) -> list[ModelSegment]:
    segments: list[ModelSegment] = []
    for kind, *words in (line.split(" ") for line in lines):
        if kind == "segment":
            segments.append(ModelSegment(int(words[0]), [], []))
        elif kind == "batch":
            segments[-1].batches.append(_batch(words))
        elif kind == "record":
            batches = segments[-1].batches
            batches[-1] = batches[-1]._replace(records=(*batches[-1].records, _record(words)))
        elif kind == "aborted":
            segments[-1].aborted.append(Aborted(*map(int, words)))
    return segments


def _batch(words: list[str]) -> KeptBatch:
    base, last, producer_id, epoch, sequence, leader_epoch = map(int, words[:6])
    is_transactional, is_control, has_append_time = (word == "true" for word in words[6:9])
    codec, horizon, max_timestamp = map(int, words[9:])
    return KeptBatch(
        base,
        last,
        producer_id,
        epoch,
        sequence,
        leader_epoch,
        is_transactional,
        is_control,
        has_append_time,
        codec,
        None if horizon < 0 else horizon,
        max_timestamp,
        (),
    )


def _record(words: list[str]) -> KeptRecord:
    key, value, *headers = map(_bytes, words[2:])
    pairs = zip(headers[::2], headers[1::2], strict=True)
    named = tuple(((name or b"").decode(), data) for name, data in pairs)
    return KeptRecord(int(words[0]), int(words[1]), key, value, named)


def _bytes(word: str) -> bytes | None:
    return None if word == "-" else bytes.fromhex(word[1:])
