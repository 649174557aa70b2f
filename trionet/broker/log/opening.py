"""Opening the logs of a folder in threads, so that the loop goes on and the disk is kept busy."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import trio

from .checkpoints import PartitionKey
from .directory import Directory
from .log import Log

Opening = Callable[[], Log | None]
"""Opens one log; None: what is in its folder is not to be opened. Blocks."""


async def open_in_threads(
    directory: Directory,
    openings: Mapping[PartitionKey, Opening],
    note_opened: Callable[[PartitionKey, Log | None], None],
    *,
    threads: int,
    at_once: int,
) -> None:
    """Call every opening, and ``note_opened`` in the loop for each that has returned.

    Args:
        directory: the data folder.
        openings: by partition.
        note_opened: told of each.
        threads: how many threads.
        at_once: how many openings a thread is given at a time.

    Raises:
        OSError: the first one that an opening raised; no other is begun.

    Cancellation: leaves when the openings that have begun are done.
    """
    limiter = trio.CapacityLimiter(threads)
    failures: list[OSError] = []

    async def open_some(keys: list[PartitionKey]) -> None:
        try:
            opened = await directory.in_thread(lambda: [openings[key]() for key in keys], limiter)
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
