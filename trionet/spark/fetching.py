"""The records of one task: a range of one partition, fetched in the loop and decoded beside it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .options import SourceOptions
from .ranges import OffsetRange


def read_range(
    options: SourceOptions, wanted: OffsetRange, *, is_retry: bool = False
) -> Iterator[Any]:
    """The records of a range as Arrow batches of the connector's columns.

    Args:
        options: of the source.
        wanted: what to read; -2 and -1 become offsets now.
        is_retry: the task has failed before: it gets a new client.
    """
    raise NotImplementedError
