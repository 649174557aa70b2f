"""Finds the segments in a partition's folder by their file names, and removes their files."""

from __future__ import annotations

from ..files._directory import Directory
from ._segment import Segment
from ._stored_segment import file_name, is_offset

_OFFSET_DIGITS = 20
_LEFTOVERS = (".deleted", ".tmp", ".cleaned")
_INDEXES = ("index", "timeindex", "txnindex")
_SEGMENT_SUFFIXES = (*_INDEXES, "snapshot", "log")


def find_segments(directory: Directory, names: list[str], now_ms: int) -> list[Segment]:
    """The segments among the files of a folder, ascending. Removes leftovers of deletions."""
    named: dict[str, set[int]] = {suffix: set() for suffix in _SEGMENT_SUFFIXES}
    for name in names:
        stem, _, suffix = name.partition(".")
        if name.endswith(_LEFTOVERS):
            directory.remove(name)
        elif suffix in named and len(stem) == _OFFSET_DIGITS and is_offset(stem):
            named[suffix].add(int(stem))
    for suffix in _INDEXES:
        for base_offset in named[suffix] - named["log"]:
            directory.remove(file_name(base_offset, suffix))
    bases = sorted(named["log"])
    # The end offset of the last segment is determined later.
    ends = [*bases[1:], *bases[-1:]]
    return [
        Segment.old(directory, base_offset, end_offset, now_ms)
        for base_offset, end_offset in zip(bases, ends, strict=True)
    ]


def remove_segments(directory: Directory, segments: list[Segment]) -> None:
    """Remove the files of segments, one segment after the other. Blocks; open files stay readable.

    The caller gives the order: oldest first at the start of a log, newest first at its end, so that
    a power failure leaves no gap in the middle. The file system may reorder removals, hence the
    sync after each segment.
    """
    for segment in segments:
        for suffix in _SEGMENT_SUFFIXES:
            directory.remove(file_name(segment.base_offset, suffix))
        directory.sync()
