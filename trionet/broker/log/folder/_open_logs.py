"""Opens the logs of a folder in threads, so that the loop runs on and the disk is kept busy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import trio

from .._log import Log
from ..files._checkpoint_files import PartitionKey
from ..files._directory import Directory

Opening = Callable[[], Log | None]
"""Opens one log; None: the log in the folder must not be opened. Blocks."""


async def open_in_threads(
    directory: Directory,
    openings: Mapping[PartitionKey, Opening],
    note_opened: Callable[[PartitionKey, Log | None], None],
    *,
    threads: int,
    at_once: int,
    prepare: Callable[[list[PartitionKey]], None] | None = None,
) -> None:
    """Call every function of ``openings`` in threads, and ``note_opened`` in the loop for each.

    Args:
        directory: the data folder.
        openings: the functions, by partition.
        note_opened: called with each result.
        threads: the number of threads.
        at_once: how many functions a thread runs per call.
        prepare: called in the thread before them; must not fail.

    Raises:
        OSError: the first one that a function raised; no other function is started.

    Cancellation: returns when the functions that have started have ended.
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
