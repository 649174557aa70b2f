"""The files of segments in a partition's folder: found by their names, and removed."""

from __future__ import annotations

from ..files._directory import Directory
from ._segment import Segment
from ._stored_segment import file_name, is_offset

_OFFSET_DIGITS = 20
_LEFTOVERS = (".deleted", ".tmp", ".cleaned")
_INDEXES = ("index", "timeindex", "txnindex")
_SEGMENT_SUFFIXES = (*_INDEXES, "snapshot", "log")


def find_segments(directory: Directory, names: list[str], now_ms: int) -> list[Segment]:
    """The segments that a folder's names speak of, ascending; remains of removals are removed."""
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
    # The end of the last one is found later.
    ends = [*bases[1:], *bases[-1:]]
    return [
        Segment.old(directory, base_offset, end_offset, now_ms)
        for base_offset, end_offset in zip(bases, ends, strict=True)
    ]


def remove_segments(directory: Directory, segments: list[Segment]) -> None:
    """Remove the files of segments, one after the other. Blocks; open files stay readable.

    The order is the caller's: at the front of a log the oldest goes first, at its end the newest,
    so that no gap is left in the middle if the power fails in between. Nothing else keeps one
    removal from reaching the disk before an earlier one, hence the sync after each.
    """
    for segment in segments:
        for suffix in _SEGMENT_SUFFIXES:
            directory.remove(file_name(segment.base_offset, suffix))
        directory.sync()
