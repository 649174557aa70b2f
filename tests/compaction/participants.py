"""Those who clean a copy of the same log: the model, Kafka, and trionet."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

from compaction.history import INDEX_INTERVAL_BYTES, SourceSegment
from support.compaction_model import Aborted, ModelSegment, Round, clean
from support.kafka_cleaner import KafkaCleaner
from trionet.broker.log import LogFile, MemoryDirectory
from trionet.broker.log.compaction._cleaning import Cleaning, CleaningInput
from trionet.broker.log.segments._aborted_transactions import AbortedTransaction
from trionet.protocol.records._batch import check_crc, iter_batches


class Model:
    """The model's log."""

    def __init__(self) -> None:
        self.segments: list[ModelSegment] = []
        self._next = 0

    def take(self, source: list[SourceSegment]) -> None:
        """Copy the segments that are new, and the one that was active last time."""
        new = [each.as_model() for each in source if each.base_offset >= self._next]
        self.segments = self.segments[:-1] + new
        self._next = source[-1].base_offset

    def clean(self, told: Round) -> int:
        """Clean the log; returns where the next cleaning begins."""
        self.segments, end_offset = clean(self.segments, told)
        return end_offset


class Kafka:
    """A folder that Kafka's cleaner cleans.

    Args:
        cleaner: a JVM.
        source: the folder of the log that is never cleaned.
        folder: an empty one, whose name ends with the partition's number.
    """

    def __init__(self, cleaner: KafkaCleaner, source: Path, folder: Path) -> None:
        self._cleaner = cleaner
        self._source = source
        self._folder = folder
        self._next = 0
        self.segments: list[ModelSegment] = []
        self.producers: dict[int, tuple[int, int]] = {}

    def take(self, source: list[SourceSegment], end_offset: int) -> None:
        """Copy the new files of the log, which is closed: everything is in its folder."""
        self._end_offset = end_offset
        for segment in source:
            if segment.base_offset >= self._next:
                for path in self._source.glob(f"{segment.base_offset:020d}.*"):
                    shutil.copy(path, self._folder)
        self._next = source[-1].base_offset
        for path in self._folder.glob("*.snapshot"):
            path.unlink()
        shutil.copy(self._source / f"{end_offset:020d}.snapshot", self._folder)
        if (self._source / "leader-epoch-checkpoint").exists():
            shutil.copy(self._source / "leader-epoch-checkpoint", self._folder)

    def clean(self, told: Round, segment_bytes: int) -> int:
        """Clean the log; returns where the next cleaning begins.

        Args:
            told: what to clean.
            segment_bytes: up to which size segments are joined.
        """
        settings = {
            "internal.segment.bytes": segment_bytes,
            "segment.index.bytes": 4096,
            "index.interval.bytes": INDEX_INTERVAL_BYTES,
        }
        result = self._folder.with_suffix(".txt")
        done = self._cleaner.clean(self._folder, self._end_offset, told, settings, result)
        self.segments, self.producers = done.segments, done.producers
        return done.end_offset


class Trionet:
    """Segments in memory that trionet's cleaning cleans.

    Args:
        rng: decides which segments are joined, and how much is read at a time.
    """

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._segments: list[SourceSegment] = []
        self._next = 0

    @property
    def segments(self) -> list[ModelSegment]:
        """What is left."""
        return [each.as_model() for each in self._segments]

    def take(self, source: list[SourceSegment]) -> None:
        """Copy the segments that are new, and the one that was active last time."""
        new = [each for each in source if each.base_offset >= self._next]
        self._segments = self._segments[:-1] + new
        self._next = source[-1].base_offset

    def clean(self, told: Round) -> int:
        """Clean the log; returns where the next cleaning begins."""
        cleaning = Cleaning(self._input(told))
        ends = [each.base_offset for each in self._segments[1:]]
        with_ends = list(zip(self._segments, ends, strict=False))
        for segment, end in with_ends:
            if told.first_dirty_offset < end <= told.end_offset:
                file = _file(segment.data)
                position = _position(segment.data, told.first_dirty_offset)
                if cleaning.map_segment(file, len(segment.data), position, end):
                    break
        chosen = [each for each in with_ends if each[0].base_offset < cleaning.end_offset]
        cleaned = [self._clean_group(cleaning, group) for group in self._groups(chosen)]
        self._segments = cleaned + self._segments[len(chosen) :]
        return cleaning.end_offset

    def _input(self, told: Round) -> CleaningInput:
        aborted = sorted(
            (each for segment in self._segments for each in segment.aborted),
            key=lambda each: each.first_offset,
        )
        return CleaningInput(
            first_dirty_offset=told.first_dirty_offset,
            end_offset=told.end_offset,
            keys_max=told.keys_max,
            delete_retention_ms=told.delete_retention_ms,
            now_ms=told.now_ms,
            aborted=[
                AbortedTransaction(*each) for each in aborted if each.first_offset < told.end_offset
            ],
            last_records=told.last_records,
            index_interval_bytes=self._rng.choice([0, 100, 4096]),
            inflated_bytes_max=2**20,
            read_bytes=self._rng.choice([1, 100, 1000, 2**20]),
        )

    def _groups(
        self, chosen: list[tuple[SourceSegment, int]]
    ) -> Iterator[list[tuple[SourceSegment, int]]]:
        while chosen:
            count = self._rng.randint(1, 4)
            yield chosen[:count]
            chosen = chosen[count:]

    def _clean_group(
        self, cleaning: Cleaning, group: list[tuple[SourceSegment, int]]
    ) -> SourceSegment:
        base_offset, end_offset = group[0][0].base_offset, group[-1][1]
        destination = _file(b"")
        cleaning.start_group(base_offset, destination)
        for segment, end in group:
            file = _file(segment.data)
            cleaning.clean_segment(file, len(segment.data), segment.base_offset, end)
        done = cleaning.finish_group(end_offset)
        data = destination.read_at(0, done.size + 1)
        assert len(data) == done.size
        _check_offsets(data, base_offset, end_offset)
        return SourceSegment(base_offset, data, [Aborted(*each) for each in done.aborted])


def _file(data: bytes) -> LogFile:
    file = MemoryDirectory().create(f"{0:020d}.log")
    if data:
        file.write_at(0, [data])
    return file


def _position(data: bytes, offset: int) -> int:
    """Where in a segment the first batch is that ends at or after an offset."""
    positions = [at for at, header in iter_batches(data) if header.last_offset >= offset]
    return positions[0] if positions else len(data)


def _check_offsets(data: bytes, base_offset: int, end_offset: int) -> None:
    """A cleaned file goes from its name to where the next one begins, and never back."""
    expected = base_offset
    end = 0
    for at, header in iter_batches(data):
        assert at == end
        assert expected <= header.base_offset <= header.last_offset < end_offset
        assert check_crc(data, at, header)
        expected, end = header.last_offset + 1, at + header.size
    assert end == len(data)
    assert expected == end_offset
