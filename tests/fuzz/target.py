"""What can be fuzzed.

Each file in `targets` holds a function `run` from bytes to nothing. It raises only when something
of ours is wrong, does the same with the same bytes, and uses no network. Beside it are `WORDS`,
which a fuzzer may use, and `BYTES_MAX`, beyond which longer inputs say nothing new.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable
from pathlib import Path

import attrs

_FOLDER = Path(__file__).parent / "targets"

NAMES = tuple(sorted(path.stem for path in _FOLDER.glob("*.py")))
"""The targets."""


@attrs.frozen
class Target:
    """One of them.

    Attributes:
        name: of its file.
        run: feeds one input; what it raises is a find.
        words: what inputs are made of, among other things.
        bytes_max: the longest input that makes sense.
    """

    name: str
    run: Callable[[bytes], None]
    words: tuple[bytes, ...]
    bytes_max: int


def load(name: str) -> Target:
    """Import a target, and with it what it tests."""
    module = importlib.import_module(f"fuzz.targets.{name}")
    return Target(name, module.run, module.WORDS, module.BYTES_MAX)


def purpose(name: str) -> str:
    """What a target is about, without importing it."""
    tree = ast.parse((_FOLDER / f"{name}.py").read_text("utf-8"))
    return (ast.get_docstring(tree) or "").splitlines()[0]
