"""Opens the tables in a results directory with Spark, limited to a time range.

The module imports pyspark only when a table is opened: :func:`check_folder` is called before Spark
starts, so that a wrong directory is reported immediately.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from .....errors import ConfigError
from ._time_range import TimeRange

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: The table that every results directory has.
WINDOWS: Final = "windows"
#: The maximum number of days in a path pattern; for more days, Spark lists the whole table.
_DAYS_LISTED_MAX: Final = 400


def check_folder(folder: str) -> None:
    """Check, before Spark is started, that a local directory contains results.

    Raises:
        ConfigError: the directory does not exist, or contains no pipeline results.
    """
    parts = urlsplit(folder)
    if parts.scheme not in ("", "file"):
        return  # a remote file system, which only Spark can read
    path = Path(unquote(parts.path) if parts.scheme else folder)
    if not path.is_dir():
        what = "is not a directory" if path.exists() else "does not exist"
        raise ConfigError(f"--folder {folder}: {what}; {_WHAT_TO_GIVE}")
    if not (path / WINDOWS).is_dir():
        raise ConfigError(
            f"--folder {folder}: no pipeline results (no directory {WINDOWS}); {_WHAT_TO_GIVE};"
            " the first results are written when the watermark passes the end of the first minute"
        )


_WHAT_TO_GIVE: Final = "give the directory of `trionet pipeline run --folder`"


class Results:
    """The results in a directory, limited to a time range.

    Args:
        session: the Spark session.
        folder: the results directory, on any file system that Spark can read.
        requested: the time range of the rows to return.
        now: the current time; there are no results after it.
    """

    def __init__(
        self, session: SparkSession, folder: str, requested: TimeRange, now: datetime
    ) -> None:
        self._session = session
        self._folder = folder.rstrip("/") or "/"
        self._requested = requested
        self._now = now
        self._found: dict[str, DataFrame | None] = {}

    def table(self, name: str, columns: Sequence[str]) -> DataFrame | None:
        """Return a table; None if it has no files.

        The column ``at`` contains the window, in microseconds since the epoch.

        Args:
            name: the name of the table.
            columns: the columns to select besides ``at``.

        Raises:
            ConfigError: the table lacks a column, so it was not written by this pipeline.
        """
        from pyspark.sql import functions as f

        if name not in self._found:
            # Listing files and reading their schema is much of the work, for small results most.
            self._found[name] = self._read(f"{self._folder}/{name}")
        found = self._found[name]
        if found is None:
            return None
        missing = sorted({"window", "day", *columns} - set(found.columns))
        if missing:
            raise ConfigError(
                f"--folder {self._folder}: table {name} was not written by this version of the"
                f" pipeline; missing columns: {', '.join(missing)}"
            )
        start, end = self._requested.start, self._requested.end
        if start is not None:
            # The day is part of the path, so that files of other days are not opened.
            found = found.where(f.col("day") >= f.lit(start.date()))
            found = found.where(f.col("window") >= f.lit(start))
        if end is not None:
            found = found.where(f.col("day") <= f.lit(end.date()))
            found = found.where(f.col("window") < f.lit(end))
        return found.select(f.unix_micros("window").alias("at"), *columns)

    def _read(self, path: str) -> DataFrame | None:
        from pyspark.errors import AnalysisException

        days = self._days()
        paths = f"{path}/day={days}" if days else path
        try:
            return self._session.read.option("basePath", path).parquet(paths)
        except AnalysisException as error:
            # No files yet, or none for these days.
            if error.getCondition() in ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA"):
                return None
            raise

    def _days(self) -> str:
        """Return a Hadoop path pattern for the days of the range; empty if there are too many."""
        if self._requested.start is None:
            return ""
        first = self._requested.start.date()
        # Without an end, include results written since the command was started.
        last = (self._requested.end or self._now + timedelta(days=1)).date()
        count = (last - first).days + 1
        if not 1 <= count <= _DAYS_LISTED_MAX:
            return ""
        return f"{{{','.join(str(first + timedelta(days=n)) for n in range(count))}}}"
