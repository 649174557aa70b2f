"""Opening the logs of a folder in threads, so that the loop goes on and the disk is kept busy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import trio

from .._log import Log
from ..files._checkpoint_files import PartitionKey
from ..files._directory import Directory

Opening = Callable[[], Log | None]
"""Opens one log; None: what is in its folder is not to be opened. Blocks."""


async def open_in_threads(
    directory: Directory,
    openings: Mapping[PartitionKey, Opening],
    note_opened: Callable[[PartitionKey, Log | None], None],
    *,
    threads: int,
    at_once: int,
    prepare: Callable[[list[PartitionKey]], None] | None = None,
) -> None:
    """Call every opening, and ``note_opened`` in the loop for each that has returned.

    Args:
        directory: the data folder.
        openings: by partition.
        note_opened: told of each.
        threads: how many threads.
        at_once: how many openings a thread is given at a time.
        prepare: called in the thread before those are; must not fail.

    Raises:
        OSError: the first one that an opening raised; no other is begun.

    Cancellation: leaves when the openings that have begun are done.
    """
    limiter = trio.CapacityLimiter(threads)
    failures: list[OSError] = []

    def open_prepared(keys: list[PartitionKey]) -> list[Log | None]:
        if prepare is not None:
            prepare(keys)
        return [openings[key]() for key in keys]

    async def open_some(keys: list[PartitionKey]) -> None:
        try:
            opened = await directory.in_thread(partial(open_prepared, keys), limiter)
        except OSError as error:
            failures.append(error)
            nursery.cancel_scope.cancel()
            return
        for key, log in zip(keys, opened, strict=True):
            note_opened(key, log)

    keys = list(openings)
    async with trio.open_nursery() as nursery:
        for first in range(0, len(keys), at_once):
            nursery.start_soon(open_some, keys[first : first + at_once])
    if failures:
        raise failures[0]
