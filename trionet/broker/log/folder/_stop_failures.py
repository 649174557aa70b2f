"""What is told of logs that could not be put on the disk when their folder was closed."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from ....errors import ApiError
from ..files._checkpoint_files import PartitionKey

logger = logging.getLogger("trionet.broker.log")

# How many partitions one line names that have the same to tell.
NAMES_LISTED_MAX = 3


def by_cause(failures: Mapping[PartitionKey, ApiError | OSError]) -> dict[str, list[str]]:
    """The names of the partitions, by what the disk said of them and of the file of the first."""
    names: dict[str, list[str]] = {}
    files: dict[str, str] = {}
    for topic, partition in sorted(failures):
        cause, file = _cause_of(failures[topic, partition])
        names.setdefault(cause, []).append(f"{topic}-{partition}")
        files.setdefault(cause, file)
    return {f"{cause}{files[cause]}": each for cause, each in names.items()}


def report(failures: Mapping[str, list[str]]) -> None:
    """One line of the log for each cause."""
    for cause, names in failures.items():
        more = len(names) - NAMES_LISTED_MAX
        logger.error(
            "the stop is not a clean one, the next start scans: %s%s could not be put on the disk:"
            " %s",
            ", ".join(names[:NAMES_LISTED_MAX]),
            f" and {more} more" if more > 0 else "",
            cause,
        )


def _cause_of(error: ApiError | OSError) -> tuple[str, str]:
    """What the disk said, and of which file, where that is known."""
    cause = error if isinstance(error, OSError) else error.__cause__
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror, f": {cause.filename}" if cause.filename else ""
    return str(error), ""
