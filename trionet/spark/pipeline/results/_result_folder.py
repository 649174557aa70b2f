"""Writes the cuts of a results directory, merges its small files, and deletes its old days.

A job writes files for each minute. When an hour is over, those of the day are merged into one in
each table, and those of a day when that is over. :mod:`._cuts` says how readers stay undisturbed.
A job that is killed at any moment leaves files that its readers ignore, and that the next call of
:meth:`ResultFolder.tidy` deletes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import date, timedelta
from itertools import groupby
from operator import attrgetter
from typing import Final, Protocol

import attrs
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from ...._util._logging import get_logger
from .._tables import TABLES
from ._cuts import CUTS, Cut, ResultFile, current_files, merged_path, whole_files

#: The most days that are over of which files are merged at once: a directory of an earlier version
#: has a file for each minute of months.
CLOSED_DAYS_MAX: Final = 2
_MERGING: Final = "_merging"

#: Errors of one file, which are no reason to stop: it may have been deleted or damaged.
_FILE_ERRORS: Final = (OSError, PySparkException, Py4JJavaError)

_log = get_logger("trionet.spark")

#: Merges the files with these paths into one in a directory, whose name begins with ``part-``.
Merge = Callable[[Sequence[str], str], None]


class Files(Protocol):
    """Access to a file system; see :class:`.._storage.Storage`."""

    def names(self, folder: str) -> list[str]: ...
    def matching(self, pattern: str) -> list[str]: ...
    def create(self, name: str) -> None: ...
    def rename(self, name: str, target: str) -> None: ...
    def delete(self, folder: str) -> None: ...


class ResultFolder:
    """A results directory, for the job that writes it.

    Args:
        files: the file system.
        folder: the directory.
    """

    def __init__(self, files: Files, folder: str) -> None:
        self._files = files
        self._folder = folder.rstrip("/")

    def begin(self, batch: int) -> None:
        """Prepare for the results of a micro-batch, before the first of them is written."""
        if self._cut is None:
            self._mark(Cut(batch))

    def has(self, batch: int) -> bool:
        """Return whether the results of a micro-batch are whole, and may have readers."""
        cut = self._cut
        return cut is not None and batch < cut.end

    def complete(self, batch: int) -> None:
        """Let readers see the results of a micro-batch, which must be in all tables."""
        self._mark(attrs.evolve(self._latest, end=batch + 1))

    def tidy(self, today: str, keep_days: int | None, merge: Merge) -> None:
        """Merge files, and delete those that were merged and those of old days.

        Args:
            today: the first day that is not over, in UTC.
            keep_days: how many days before it are kept; None for all.
            merge: merges files into one.
        """
        cut = self._latest
        first_day = cut.first_day
        if keep_days is not None:
            oldest = date.fromisoformat(today) - timedelta(days=keep_days)
            first_day = max(first_day, oldest.isoformat())
        next_cut = Cut(cut.end, cut.removals + 1, first_day)
        gone = [path for table in TABLES for path in self._old_days(table.name, first_day)]
        for table in TABLES:
            gone += self._merge_table(table.name, next_cut, today, merge)
        if gone:
            self._mark(next_cut)
            for path in gone:
                self._delete(path)

    @property
    def _cut(self) -> Cut | None:
        return Cut.latest(self._files.names(f"{self._folder}/{CUTS}"))

    @property
    def _latest(self) -> Cut:
        cut = self._cut
        assert cut is not None, "a micro-batch has begun"
        return cut

    def _mark(self, cut: Cut) -> None:
        folder = f"{self._folder}/{CUTS}"
        earlier = Cut.all_of(self._files.names(folder))
        self._files.create(f"{folder}/{cut.name}")
        # Those of the last micro-batch stay: a listing might have neither what is created nor what
        # is deleted meanwhile.
        ends = sorted({each.end for each in earlier})[-1:]
        for each in earlier:
            if each.end not in ends:
                self._files.delete(f"{folder}/{each.name}")

    def _old_days(self, table: str, first_day: str) -> Iterator[str]:
        for name in self._files.names(f"{self._folder}/{table}"):
            if name.startswith("day=") and name.removeprefix("day=") < first_day:
                yield f"{table}/{name}"

    def _merge_table(self, table: str, cut: Cut, today: str, merge: Merge) -> list[str]:
        """Merge the files of a table, and return the paths to delete."""
        root = f"{self._folder}/{table}"
        found = self._files.matching(f"{root}/day=*/batch=*/*")
        paths = ["/".join(each.rsplit("/", 3)[1:]) for each in found]
        known = whole_files(paths, cut)
        closed_days = 0
        for group in _groups(known, today):
            is_closed = group[0].day < today
            if is_closed and closed_days == CLOSED_DAYS_MAX:
                continue
            if path := self._merge(table, group, merge):
                paths.append(path)
                closed_days += is_closed
        files = whole_files(paths, cut)
        current = set(current_files(files))
        return [f"{table}/{path}" for path in _gone(files, current)]

    def _merge(self, table: str, group: Sequence[ResultFile], merge: Merge) -> str | None:
        path = merged_path(group)
        root, part = f"{self._folder}/{table}", f"{self._folder}/{_MERGING}"
        try:
            merge([f"{root}/{each.path}" for each in group], part)
            names = [each for each in self._files.names(part) if each.startswith("part-")]
            if len(names) != 1:
                raise OSError(f"{len(names)} files instead of one")
            self._files.rename(f"{part}/{names[0]}", f"{root}/{path}")
        except _FILE_ERRORS as error:
            _log.warning("cannot merge %d files to %s/%s: %s", len(group), root, path, _line(error))
            return None
        finally:
            self._delete(_MERGING)
        return path

    def _delete(self, path: str) -> None:
        try:
            self._files.delete(f"{self._folder}/{path}")
        except _FILE_ERRORS as error:
            _log.warning("cannot delete %s/%s: %s", self._folder, path, _line(error))


def _line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


def _groups(known: Sequence[ResultFile], today: str) -> Iterator[list[ResultFile]]:
    """Yield the files to merge: those of days that are over, and those added to the others."""
    for day, each in groupby(current_files(known), attrgetter("day")):
        group = [file for file in each if day < today or not file.is_merged]
        if len(group) > 1:
            yield group


def _gone(files: Sequence[ResultFile], current: set[ResultFile]) -> Iterator[str]:
    """Yield the files that others replace; a directory of nothing else as a whole."""
    kept = {each.folder for each in current}
    for folder, each in groupby(sorted(files, key=attrgetter("path")), attrgetter("folder")):
        gone = [file.path for file in each if file not in current]
        if gone and folder not in kept:
            yield folder
        else:
            yield from gone
