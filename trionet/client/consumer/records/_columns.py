"""Columns of records cut, and put together."""

# Compiled by mypyc.

from __future__ import annotations

from ....protocol.records._types import Columns


def sliced(columns: Columns, start: int, end: int) -> Columns:
    """The records from one number up to another; themselves if that is all of them."""
    if start == 0 and end == len(columns.offsets):
        return columns
    return Columns(
        columns.offsets[start:end],
        columns.timestamps[start:end],
        columns.keys[start:end],
        columns.values[start:end],
        columns.headers[start:end],
    )


def joined(columns: Columns, more: Columns) -> Columns:
    """Both together; the lists of the first become those of the result."""
    columns.timestamps.extend(more.timestamps)
    columns.keys.extend(more.keys)
    columns.values.extend(more.values)
    columns.headers.extend(more.headers)
    first, second = columns.offsets, more.offsets
    if isinstance(first, list):
        first.extend(second)
        return columns
    if isinstance(first, range) and isinstance(second, range) and first.stop == second.start:
        return columns._replace(offsets=range(first.start, second.stop))
    return columns._replace(offsets=[*first, *second])
