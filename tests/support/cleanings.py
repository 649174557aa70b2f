"""Logs of a few batches, written and cleaned in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypedDict, Unpack

from trionet.broker.log import MemoryDirectory
from trionet.broker.log.compaction._cleaning import (
    Cleaning,
    CleaningInput,
    CleaningStatistics,
)
from trionet.broker.log.segments._aborted_transactions import AbortedTransaction
from trionet.broker.log.segments._cleaned_file import CleanedFile
from trionet.protocol.records import (
    BatchFields,
    BatchHeader,
    EndTransactionMarker,
    decode_batch,
    encode_batch,
    encode_marker,
    iter_batches,
)
from trionet.protocol.records._types import NewRecord

NOW = 1_700_000_000_000
RETENTION = 1000


def batch(
    first_offset: int, *texts: str, timestamp: int = 0, **fields: Unpack[BatchFields]
) -> bytes:
    """A batch of records such as ``key=value``, ``key`` (a tombstone) or ``=value`` (no key).

    Timestamps rise from ``timestamp`` by 1.
    """
    fields["base_offset"] = first_offset
    records: list[NewRecord] = []
    for number, text in enumerate(texts):
        key, has_value, value = text.partition("=")
        value_or_null = value.encode() if has_value else None
        records.append((timestamp + number, key.encode() or None, value_or_null, ()))
    return encode_batch(records, **fields)


def transactional(base_offset: int, producer_id: int, *records: str, epoch: int = 0) -> bytes:
    return batch(
        base_offset,
        *records,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=0,
        transactional=True,
    )


def marker(base_offset: int, producer_id: int, *, is_commit: bool, epoch: int = 0) -> bytes:
    return encode_marker(
        EndTransactionMarker(is_commit, 0),
        timestamp=NOW,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_offset=base_offset,
        leader_epoch=0,
    )


class Cleaned(NamedTuple):
    """A log after a cleaning."""

    data: bytes
    file: CleanedFile
    end_offset: int
    """Where the round ended."""
    statistics: CleaningStatistics

    @property
    def headers(self) -> list[BatchHeader]:
        return [header for _, header in iter_batches(self.data)]

    @property
    def rows(self) -> list[str]:
        """The records, such as ``7:key=value``; markers are left out."""
        rows = []
        for pos, header in iter_batches(self.data):
            for offset, _, key, value, _ in decode_batch(self.data, pos):
                if not header.is_control:
                    text = "" if value is None else f"={value.decode()}"
                    rows.append(f"{offset}:{(key or b'').decode()}{text}")
        return rows

    @property
    def markers(self) -> list[int]:
        """The offsets of the markers."""
        return [each.base_offset for each in self.headers if each.is_control and each.count]


class Facts(TypedDict, total=False):
    """What a cleaning knows about its log, besides its batches."""

    keys_max: int
    now_ms: int
    aborted: Sequence[tuple[int, int, int, int]]
    last_records: dict[int, tuple[int, int]]


def clean(
    *segments: bytes, first_dirty: int = 0, end: int | None = None, **facts: Unpack[Facts]
) -> Cleaned:
    """Clean a log into one segment.

    Args:
        segments: the batches of each segment.
        first_dirty: the first offset that is mapped.
        end: the offset after the last segment, if it is not the one after the last batch.
        facts: the other facts about the log.
    """
    directory = MemoryDirectory()
    bases = [next(iter_batches(each))[1].base_offset for each in segments]
    *_, (_, last) = iter_batches(segments[-1])
    ends = [*bases[1:], last.last_offset + 1 if end is None else end]
    files = [directory.create(f"{base}.log") for base in bases]
    for file, data in zip(files, segments, strict=True):
        file.write_at(0, [data])
    cleaning = Cleaning(
        CleaningInput(
            first_dirty_offset=first_dirty,
            end_offset=ends[-1],
            keys_max=facts.get("keys_max", 1000),
            delete_retention_ms=RETENTION,
            now_ms=facts.get("now_ms", NOW),
            aborted=[AbortedTransaction(*each) for each in facts.get("aborted", ())],
            last_records=facts.get("last_records", {}),
            index_interval_bytes=4096,
            read_bytes=2**18,
            inflated_bytes_max=2**20,
        )
    )
    sources = list(zip(files, segments, bases, ends, strict=True))
    for file, data, _, following in sources:
        if following > first_dirty and cleaning.map_segment(file, len(data), 0, following):
            break
    destination = directory.create("cleaned.log")
    cleaning.start_group(bases[0], destination)
    for file, data, base, following in sources:
        cleaning.clean_segment(file, len(data), base, following)
    cleaned = cleaning.finish_group(ends[-1])
    data = destination.read_at(0, destination.size())
    return Cleaned(data, cleaned, cleaning.end_offset, cleaning.statistics)


def clean_again(data: bytes, **facts: Unpack[Facts]) -> Cleaned:
    """Clean a log that was cleaned before, after a record of another key was appended."""
    *_, (_, last) = iter_batches(data)
    end = last.last_offset + 1
    return clean(data, batch(end, "another="), first_dirty=end, **facts)
