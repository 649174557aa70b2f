"""Reports logs that could not be flushed when their folder was closed, grouped by cause."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from ....errors import ApiError
from ..files._checkpoint_files import PartitionKey

logger = logging.getLogger("trionet.broker.log")

# How many partitions with the same cause are named in one line.
NAMES_LISTED_MAX = 3


def group_by_cause(failures: Mapping[PartitionKey, ApiError | OSError]) -> dict[str, list[str]]:
    """The names of partitions, by the error and the file that the first of them reported."""
    names: dict[str, list[str]] = {}
    files: dict[str, str] = {}
    for topic, partition in sorted(failures):
        cause, file = _cause_of(failures[topic, partition])
        names.setdefault(cause, []).append(f"{topic}-{partition}")
        files.setdefault(cause, file)
    return {f"{cause}{files[cause]}": each for cause, each in names.items()}


def log_failures(failures: Mapping[str, list[str]]) -> None:
    """Log one line per cause."""
    for cause, names in failures.items():
        more = len(names) - NAMES_LISTED_MAX
        logger.error(
            "the shutdown is not clean, the next start will scan: %s%s could not be flushed: %s",
            ", ".join(names[:NAMES_LISTED_MAX]),
            f" and {more} more" if more > 0 else "",
            cause,
        )


def _cause_of(error: ApiError | OSError) -> tuple[str, str]:
    """The error of the operating system, and its file if that is known."""
    cause = error if isinstance(error, OSError) else error.__cause__
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror, f": {cause.filename}" if cause.filename else ""
    return str(error), ""
