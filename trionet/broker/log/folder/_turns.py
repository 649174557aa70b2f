"""Walks over all logs of a data directory, of which there may be 100,000, in turns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .._log import Log
from ..files._checkpoint_files import PartitionKey

LOGS_PER_TURN = 200
"""How many logs are looked at before other tasks run: less than a millisecond of work."""


def in_turns(logs: Mapping[PartitionKey, Log]) -> Iterator[list[tuple[PartitionKey, Log]]]:
    """Yield all logs in groups, between which the caller lets other tasks run.

    Logs that are deleted meanwhile are left out. Those that are created are not included, except
    in the place of a deleted one.
    """
    keys = list(logs)
    for first in range(0, len(keys), LOGS_PER_TURN):
        some = keys[first : first + LOGS_PER_TURN]
        yield [(key, log) for key in some if (log := logs.get(key)) is not None]
