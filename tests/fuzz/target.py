"""What can be fuzzed.

Each file in `targets` holds a function `run` from bytes to nothing. It raises only when something
of ours is wrong, does the same with the same bytes, and uses no network. Beside it are `WATCHED`,
the modules and packages whose branches show whether an input leads to something new; `WORDS`, which
a fuzzer may use; and `BYTES_MAX`, beyond which longer inputs say nothing new.
"""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path

import attrs

_FOLDER = Path(__file__).parent / "targets"

NAMES = tuple(sorted(path.stem for path in _FOLDER.glob("*.py")))
"""The targets."""

#: How much of the time a target gets, beside 3 for the others: those whose runs take longest, or
#: whose inputs have the most steps, need most of it.
_WEIGHTS = {"plain": 1, "http_exchange": 6, "sasl_exchange": 6, "tls_records": 9}


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


def share(name: str, names: Sequence[str]) -> float:
    """The part of the time that is for one of these targets, which it belongs to."""
    weights = {other: _WEIGHTS.get(other, 3) for other in names}
    return weights[name] / sum(weights.values())


def purpose(name: str) -> str:
    """What a target is about, without importing it."""
    return (ast.get_docstring(_tree(name)) or "").splitlines()[0]


def watched(name: str) -> tuple[str, ...]:
    """The `WATCHED` of a target, without importing it."""
    [found] = [
        node.value
        for node in _tree(name).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "WATCHED"
    ]
    names: tuple[str, ...] = ast.literal_eval(found)
    return names


def _tree(name: str) -> ast.Module:
    spec = importlib.util.find_spec(f"fuzz.targets.{name}")
    assert spec is not None
    assert spec.origin is not None
    return ast.parse(Path(spec.origin).read_text("utf-8"))
