"""The tables of a pipeline's folder, in Spark, and nothing of them yet."""

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

#: What a folder of the pipeline has in any case.
WINDOWS: Final = "windows"
#: Days that are named one by one to Spark; for more it looks at all that there are.
_DAYS_NAMED: Final = 400


def check_folder(folder: str) -> None:
    """Find out, before Spark is started, whether a folder of this machine has results.

    Raises:
        ConfigError: it is not there, or it is something else's.
    """
    parts = urlsplit(folder)
    if parts.scheme not in ("", "file"):
        return  # Spark knows how to look there
    path = Path(unquote(parts.path) if parts.scheme else folder)
    if not path.is_dir():
        what = "is no folder" if path.exists() else "does not exist"
        raise ConfigError(f"--folder {folder}: it {what}; {_WHAT_IT_IS}")
    if not (path / WINDOWS).is_dir():
        raise ConfigError(
            f"--folder {folder}: it has no results of a pipeline (there is no {WINDOWS} in it);"
            f" {_WHAT_IT_IS}, and results come when the first minute is over and its watermark has"
            " passed"
        )


_WHAT_IT_IS: Final = "it is what `trionet pipeline run --folder` was given"


class Results:
    """The results in a folder, within a range of time.

    Args:
        session: of Spark.
        folder: anything that Spark can read.
        asked: rows of other times are left out.
        now: until when there may be results.
    """

    def __init__(self, session: SparkSession, folder: str, asked: TimeRange, now: datetime) -> None:
        self._session = session
        self._folder = folder.rstrip("/") or "/"
        self._asked = asked
        self._now = now
        self._found: dict[str, DataFrame | None] = {}

    def table(self, name: str, columns: Sequence[str]) -> DataFrame | None:
        """A table with ``at``, its window in microseconds since the epoch; None without rows.

        Args:
            name: of the table.
            columns: what has to be there besides ``window``.

        Raises:
            ConfigError: the folder has a table of this name that is not the pipeline's.
        """
        from pyspark.sql import functions as f

        if name not in self._found:
            # To look for files and their columns is much of the work, for small results most.
            self._found[name] = self._read(f"{self._folder}/{name}")
        found = self._found[name]
        if found is None:
            return None
        missing = sorted({"window", "day", *columns} - set(found.columns))
        if missing:
            raise ConfigError(
                f"--folder {self._folder}: what is in {name} is not the pipeline's, or another"
                f" version's: it has no column {', '.join(missing)}"
            )
        start, end = self._asked.start, self._asked.end
        if start is not None:
            # The day is known from the path, so that no file of other days is opened.
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
            # There are no files yet, or none of these days.
            if error.getCondition() in ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA"):
                return None
            raise

    def _days(self) -> str:
        """The days of the range as Hadoop's pattern for names, if they are not too many."""
        if self._asked.start is None:
            return ""
        first = self._asked.start.date()
        # Without an end there may be what came while this was started.
        last = (self._asked.end or self._now + timedelta(days=1)).date()
        count = (last - first).days + 1
        if not 1 <= count <= _DAYS_NAMED:
            return ""
        return f"{{{','.join(str(first + timedelta(days=n)) for n in range(count))}}}"
