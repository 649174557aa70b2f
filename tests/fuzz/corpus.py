"""Kept inputs: the fewest and smallest that reach all that is known to be reached.

They lie in `seeds`, in a folder for each target. Those whose names are numbers may be replaced when
smaller ones reach the same; one with a name in words found something once, and stays.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Any

from fuzz.target import Target

SEEDS = Path(__file__).parent / "seeds"
KEPT_MAX = 40

_NUMBERED = re.compile(r"[0-9a-f]{12}\.bin")
#: The package, what it lets others read for it, and the targets, which know other cases apart.
_PACKAGES = ("trionet", "scramp", "jwt", "h11", "fuzz")
#: Beyond this, more of the same is the same.
_TIMES_MAX = 8

Step = tuple[str, int, int, int]


def seeds_of(name: str) -> list[Path]:
    """The files of a target, in an order that stays."""
    return sorted((SEEDS / name).glob("*.bin"))


def keep(target: Target, found: Iterable[bytes], folder: Path) -> int:
    """Put into a folder what of this reaches more than what is in it, and leave out the others.

    Returns:
        How many files were written that were not there before.
    """
    folder.mkdir(parents=True, exist_ok=True)
    before = {path: path.read_bytes() for path in folder.glob("*.bin")}
    named = {path: data for path, data in before.items() if not _NUMBERED.fullmatch(path.name)}
    numbered = {data for path, data in before.items() if path not in named}
    kept = smallest(target, [*numbered, *found], named.values())
    after = {folder / f"{hashlib.sha1(data).hexdigest()[:12]}.bin": data for data in kept}
    for path in before.keys() - named.keys() - after.keys():
        path.unlink()
    for path, data in after.items():
        path.write_bytes(data)
    return len(after.keys() - before.keys())


def smallest(target: Target, inputs: Iterable[bytes], besides: Iterable[bytes] = ()) -> list[bytes]:
    """Of inputs those that are needed to reach what all of them do, at most ``KEPT_MAX``.

    Args:
        target: what they are fed to.
        inputs: to choose from.
        besides: what is kept in any case.
    """
    reached = {data: steps(target, data) for data in {*inputs}}
    missing = set().union(*reached.values()).difference(*(steps(target, data) for data in besides))
    kept: list[bytes] = []
    while missing and len(kept) < KEPT_MAX:
        # The one that brings most; of several the shortest.
        best = max(reached, key=lambda data: (len(missing & reached[data]), -len(data), data))
        missing -= reached.pop(best)
        kept.append(best)
    return kept


def steps(target: Target, data: bytes) -> set[Step]:
    """From which line to which other an input leads, and about how often: 1, 2-3, 4-7, or more."""
    taken: Counter[tuple[str, int, int]] = Counter()
    is_ours: dict[str, bool] = {}

    def enter(frame: FrameType, _: str, __: Any) -> Any:
        path = frame.f_code.co_filename
        ours = is_ours.get(path)
        if ours is None:
            ours = is_ours[path] = any(f"/{name}/" in path for name in _PACKAGES)
        if not ours:
            return None
        last = 0

        def walk(frame: FrameType, event: str, _: Any) -> Any:
            nonlocal last
            if event == "line":
                taken[path, last, frame.f_lineno] += 1
                last = frame.f_lineno
            return walk

        return walk

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        target.run(data)
    finally:
        sys.settrace(before)
    return {(*step, min(times, _TIMES_MAX).bit_length()) for step, times in taken.items()}
