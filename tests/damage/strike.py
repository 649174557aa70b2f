"""What befalls a data directory: something is removed, emptied or cut, or a byte is flipped."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from trionet.broker.log.files._checkpoint_files import partition_of
from trionet.protocol.records._batch import iter_batches

# Base offset, length, leader epoch, magic: no CRC covers them, in Kafka either.
_UNPROTECTED_BYTES = 17


class Damage(NamedTuple):
    """What was done, and whether no checksum can show it."""

    text: str
    is_unprotected: bool = False


Strike = Callable[[Path, random.Random, str], Damage]
"""Does one damage to a file of this pattern; says which."""


def take_away(folder: Path, rng: random.Random, only: str = "*") -> Damage:
    """Remove, empty or cut a file, or remove a partition's folder."""
    partitions = sorted(each for each in folder.iterdir() if partition_of(each.name) is not None)
    if only == "*" and rng.random() < 0.1:
        gone = rng.choice(partitions)
        shutil.rmtree(gone)
        return Damage(f"removed {gone.name}")
    path = _choose(folder, rng, only, any_size=True)
    name = path.relative_to(folder)
    size = path.stat().st_size
    what = rng.choice(("removed", "emptied", "cut", "cut"))
    if what == "removed":
        path.unlink()
        return Damage(f"removed {name}")
    at = 0 if what == "emptied" else _cut_position(path, size, rng)
    os.truncate(path, at)
    return Damage(f"cut {name} of {size} bytes at byte {at}")


def flip(folder: Path, rng: random.Random, only: str = "*") -> Damage:
    """Change one bit, or a whole byte, of a file."""
    path = _choose(folder, rng, only, any_size=False)
    content = bytearray(path.read_bytes())
    # A database is mostly empty pages.
    used = [at for at, byte in enumerate(content) if byte] if rng.random() < 0.7 else []
    at = rng.choice(used or range(len(content)))
    mask = rng.choice((1 << rng.randrange(8), rng.randint(1, 255)))
    is_unprotected = path.suffix == ".log" and any(
        position <= at < position + _UNPROTECTED_BYTES for position, _ in iter_batches(content)
    )
    content[at] ^= mask
    with path.open("r+b") as file:
        file.write(content)
    name = path.relative_to(folder)
    text = f"flipped byte {at} of {name}, {len(content)} bytes, by {mask:#04x}"
    return Damage(text, is_unprotected)


def _choose(folder: Path, rng: random.Random, only: str, *, any_size: bool) -> Path:
    """A file; mostly one with records, and each kind of the others as often."""
    files = sorted(
        each for each in folder.rglob(only) if each.is_file() and (any_size or each.stat().st_size)
    )
    if not files:
        return _choose(folder, rng, "*", any_size=any_size)
    kinds: dict[str, list[Path]] = {}
    for each in files:
        kinds.setdefault(each.suffix if each.parent != folder else each.name, []).append(each)
    logs = kinds.pop(".log", [])
    if logs and (not kinds or rng.random() < 0.5):
        return rng.choice(logs)
    return rng.choice(kinds[rng.choice(sorted(kinds))])


def _cut_position(path: Path, size: int, rng: random.Random) -> int:
    """Anywhere, or between two batches."""
    if path.suffix == ".log" and size and rng.random() < 0.5:
        return rng.choice([position for position, _ in iter_batches(path.read_bytes())])
    return rng.randrange(size) if size else 0
