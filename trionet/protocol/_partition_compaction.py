"""The state of a compacted partition, as a tagged field in responses of DescribeLogDirs.

Kafka's protocol does not report how a log is compacted; Kafka reports it in JMX, for all logs
together. A trionet broker adds this field to ``DescribeLogDirsPartition`` of compacted topics, from
version 2 on. Clients that do not know the field skip it, as KIP-482 demands of them.
"""

from __future__ import annotations

from typing import Final

from trionet.errors import WireFormatError
from trionet.protocol._wire import Message
from trionet.protocol.unrolling._codecs import Codecs

#: The tag of the field. Kafka's own tags count up from 0, so that a high one is never theirs.
TAG: Final = 7_631_470  # "trn"

#: The first version of DescribeLogDirs with tagged fields.
TAGS_SINCE: Final = 2

NEVER: Final = -1


class PartitionCompaction(Message):
    """The state of a compacted partition.

    Attributes:
        dirty_ratio: the share of the log that the next cleaning would find dirty, from 0 to 1.
        cleaned_ms: the time when the last cleaning ended, in milliseconds since the epoch; -1 if
            there was none since the broker has started.
        cleaning_ms: the duration of that cleaning, in milliseconds.
        bytes_read: the number of bytes that it read in its second pass.
        bytes_written: the number of bytes that are left of them.
        records_read: the number of records that it read.
        records_written: the number of records that are left of them.
        uncleanable: why the log is not cleaned any more; None if it is.
    """

    __slots__ = (
        "bytes_read",
        "bytes_written",
        "cleaned_ms",
        "cleaning_ms",
        "dirty_ratio",
        "records_read",
        "records_written",
        "uncleanable",
        "unknown_tags",
    )
    _layout: tuple[str, ...] = (
        "dirty_ratio float64",
        "cleaned_ms int64",
        "cleaning_ms int64",
        "bytes_read int64",
        "bytes_written int64",
        "records_read int64",
        "records_written int64",
        "uncleanable string null",
    )

    def __init__(
        self,
        *,
        dirty_ratio: float = 0.0,
        cleaned_ms: int = NEVER,
        cleaning_ms: int = 0,
        bytes_read: int = 0,
        bytes_written: int = 0,
        records_read: int = 0,
        records_written: int = 0,
        uncleanable: str | None = None,
        unknown_tags: tuple[tuple[int, bytes], ...] = (),
    ) -> None:
        self.dirty_ratio: float = dirty_ratio
        self.cleaned_ms: int = cleaned_ms
        self.cleaning_ms: int = cleaning_ms
        self.bytes_read: int = bytes_read
        self.bytes_written: int = bytes_written
        self.records_read: int = records_read
        self.records_written: int = records_written
        self.uncleanable: str | None = uncleanable
        self.unknown_tags: tuple[tuple[int, bytes], ...] = unknown_tags


#: Flexible, so that later versions of trionet may add tagged fields of their own.
CODECS: Final[Codecs[PartitionCompaction]] = Codecs(PartitionCompaction, "data", 0, 0, 0)


def encode_tag(compaction: PartitionCompaction) -> tuple[int, bytes]:
    """Return the tagged field for ``DescribeLogDirsPartition.unknown_tags``."""
    chunks: list[bytes] = []
    CODECS[0][1](compaction, chunks)  # type: ignore[arg-type]  # all chunks are bytes
    return TAG, b"".join(chunks)


def decode_tags(tags: tuple[tuple[int, bytes], ...]) -> PartitionCompaction | None:
    """Return the state from the unknown tags of a partition; None if it is not among them.

    A field that is malformed, which another broker may use the tag for, counts as missing.
    """
    for tag, data in tags:
        if tag == TAG:
            try:
                found = CODECS[0][0](data, 0)
            except WireFormatError:
                return None
            return found if 0 <= found.dirty_ratio <= 1 else None
    return None
