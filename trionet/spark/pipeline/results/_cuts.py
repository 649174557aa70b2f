"""Which files of a results directory belong together, while a job writes, merges and deletes some.

The tables of a micro-batch are written one after the other, so what is in the directory is not
always what belongs together. The writer says what does by a *cut*: an empty file in the directory
``_cuts``, with a name that says everything. Readers begin with the latest cut.

* Micro-batches are written in order, so that one number says which are whole in every table.
* A merged file replaces the files of the same day that are in its range of micro-batches. Its name
  has the range, so it replaces all of them in the moment in which it is there.
* Before files are deleted, there is a cut with one removal more. So a reader knows that files may
  have been deleted while it was listing them, and lists them again.

An empty file appears atomically on every file system, also in object storage, which shows an object
when it is complete and has no rename that replaces one. This module imports neither pyspark nor
pyarrow.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final

import attrs

#: The directory of the cuts, in the results directory.
CUTS: Final = "_cuts"

_CUT: Final = re.compile(r"(\d{1,18})-(\d{1,18})(?:-(\d{4}-\d\d-\d\d))?", re.ASCII)
# A name that begins with _ or . is not data.
_FILE: Final = re.compile(r"day=([^/]+)/batch=(\d{1,18})/([^/_.][^/]*)", re.ASCII)
_MERGED: Final = re.compile(r"merged-(\d{1,18})-(\d{1,18})\.parquet", re.ASCII)


@attrs.frozen(order=True)
class Cut:
    """What readers may read; a later cut is greater.

    Attributes:
        end: the first micro-batch that some table may lack.
        removals: how many times files have been deleted.
        first_day: the first day that is kept; empty if all are.
    """

    end: int
    removals: int = 0
    first_day: str = ""

    @property
    def name(self) -> str:
        """The name of the cut's file."""
        return "-".join((str(self.end), str(self.removals), *filter(None, [self.first_day])))

    @classmethod
    def all_of(cls, names: Iterable[str]) -> list[Cut]:
        """Return the cuts with these names, ascending; other names are ignored."""
        found = filter(None, map(_CUT.fullmatch, names))
        return sorted(cls(int(each[1]), int(each[2]), each[3] or "") for each in found)

    @classmethod
    def latest(cls, names: Iterable[str]) -> Cut | None:
        """Return the latest cut; None for results of a version that has written none."""
        return next(reversed(cls.all_of(names)), None)


def is_listing_whole(before: Cut | None, after: Cut | None) -> bool:
    """Return whether no files can have been deleted between two cuts."""
    if before is None or after is None:
        return before is after
    return before.removals == after.removals


@attrs.frozen
class ResultFile:
    """A file of a table.

    Attributes:
        path: the path below the directory of the table.
        day: the day of its rows, in UTC.
        first: the first micro-batch of which it has rows.
        last: the last one.
        is_merged: whether it replaces other files.
    """

    path: str
    day: str
    first: int
    last: int
    is_merged: bool

    @classmethod
    def parse(cls, path: str) -> ResultFile | None:
        """Parse a path below the directory of a table; None if that is not data."""
        if not (found := _FILE.fullmatch(path)):
            return None
        batch = int(found[2])
        merged = _MERGED.fullmatch(found[3])
        first = int(merged[1]) if merged else batch
        return cls(path, found[1], first, batch, merged is not None)

    @property
    def folder(self) -> str:
        """The directory of the file, below that of the table."""
        return self.path.rpartition("/")[0]

    def replaces(self, other: ResultFile) -> bool:
        """Return whether another file's rows are in this one."""
        is_within = self.first <= other.first and other.last <= self.last
        is_same = (self.first, self.last) == (other.first, other.last)
        return self.is_merged and is_within and not (is_same and other.is_merged)


def merged_path(files: Sequence[ResultFile]) -> str:
    """Return the path of the file that replaces these, which are of one day."""
    first, last = min(each.first for each in files), max(each.last for each in files)
    return f"day={files[0].day}/batch={last}/merged-{first}-{last}.parquet"


def whole_files(paths: Iterable[str], cut: Cut | None) -> list[ResultFile]:
    """Return the files of a table that are in a cut, also those that others replace.

    Args:
        paths: the paths below the directory of the table.
        cut: the cut; None if there is none, so that all are in it.
    """
    files = filter(None, map(ResultFile.parse, paths))
    found = (
        each for each in files if cut is None or (each.last < cut.end and each.day >= cut.first_day)
    )
    return sorted(found, key=attrgetter("day", "first", "path"))


def unmarked_cut(windows: Iterable[str]) -> Cut:
    """Return what readers may read of results that have no cut.

    Earlier versions wrote the windows of a micro-batch after all tables that are compared with
    them, so that those of its last one may be there in part.

    Args:
        windows: the paths below the directory of the table of windows.
    """
    return Cut(1 + max((each.last for each in whole_files(windows, None)), default=-1))


def current_files(files: Iterable[ResultFile]) -> list[ResultFile]:
    """Return the files that no others replace.

    Args:
        files: the output of :func:`whole_files`.
    """
    found: list[ResultFile] = []
    for _, each in groupby(files, attrgetter("day")):
        of_day = list(each)
        merged = [file for file in of_day if file.is_merged]
        found += [file for file in of_day if not any(m.replaces(file) for m in merged)]
    return found
