"""Encoded records back to rows, for tests that compare the two."""

from __future__ import annotations

from collections.abc import Iterable

from trionet.protocol.records import _implementation as implementation
from trionet.protocol.records._records import batch_chunks, decode_batch
from trionet.protocol.records._types import EncodedRecords, Record


def sealed(records: EncodedRecords, timestamp: int = 0) -> bytes:
    """The batch that a producer would send."""
    builder = implementation.writer.BatchBuilder()
    builder.begin_with(records.body, records.record_count, timestamp)
    return b"".join(batch_chunks(builder))


def rows_of(batches: Iterable[EncodedRecords], timestamp: int = 0) -> list[Record]:
    """The records of all batches; the offsets of each begin at 0."""
    return [row for each in batches for row in decode_batch(sealed(each, timestamp))]
