"""Documents of JSON, and bytes, that something has changed: values, members, depth, and text."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any, Final

#: Texts of JSON in place of a value, some of which are not valid.
VALUES: Final[tuple[str, ...]] = (
    *("null", "true", "false", '""', '"x"', "[]", "{}", "[1]", '{"a": 1}', "[[], {}]", "[null]"),
    *("0", "-1", "1", "0.5", "-0.0", "1e308", "-1e308", "5e-324", "1e400", "NaN", "Infinity"),
    *(str(2**31), str(2**53 + 1), str(2**63 - 1), str(2**63), str(2**64 - 1), str(2**64)),
    *(str(-(2**31)), str(-(2**63)), str(-(2**63) - 1), "1" + "0" * 4000, "1" + "0" * 5000),
    *('"1"', '"NaN"', '"2026-11-22T11:45:00Z"', '"9999-99-99T99:99:99Z"', '"\\ud800"'),
    *('"\\u001b]52;c;eA==\\u0007"', '"\\u202ex"', '"[bold]x[/]"', '"a\\nb\\r"', '"\\u0000"'),
    '"' + "x" * 40_000 + '"',
    "[" * 3000 + "]" * 3000,
    "[" * 200_000,
)
_MARK: Final = "\ue000"


def mutated(rng: Random, document: Any) -> bytes:
    """A document of which one to three places have been changed, as bytes."""
    changed = json.loads(json.dumps(document))
    texts: list[str] = []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        parents = list(_parents(changed))
        if parents:
            _change(rng, rng.choice(parents), texts)
    text = json.dumps(changed)
    for number, value in enumerate(texts):
        text = text.replace(json.dumps(f"{_MARK}{number}"), value)
    if rng.random() < 0.1:
        return rng.choice(BYTES)(rng, text.encode())
    return text.encode()


def _parents(value: Any) -> Any:
    """All objects and arrays that are not empty."""
    if isinstance(value, dict | list) and value:
        yield value
        for each in value.values() if isinstance(value, dict) else value:
            yield from _parents(each)


def _change(rng: Random, parent: Any, texts: list[str]) -> None:
    key = rng.choice(list(parent)) if isinstance(parent, dict) else rng.randrange(len(parent))
    kind = rng.random()
    if kind < 0.15:
        del parent[key]
    elif kind < 0.25 and isinstance(parent, list):
        parent.append(parent[key])
    elif kind < 0.3:
        parent[key] = [parent[key]] * rng.choice((1, 2, 1000))
    elif kind < 0.4 and isinstance(parent, dict):
        parent[rng.choice(("x", "number", "window", "kind", "id", "\ud800"))] = parent.pop(key)
    else:
        parent[key] = f"{_MARK}{len(texts)}"
        texts.append(rng.choice(VALUES))


def _cut(rng: Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _flipped(rng: Random, data: bytes) -> bytes:
    changed = bytearray(data or b"x")
    for _ in range(rng.choice((1, 2, 8))):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def _inserted(rng: Random, data: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.randbytes(rng.choice((1, 4, 300))) + data[at:]


def _encoded(_: Random, data: bytes) -> bytes:
    return data.decode("utf-8", "replace").encode("utf-16")


BYTES: Final[tuple[Callable[[Random, bytes], bytes], ...]] = (
    _cut,
    _flipped,
    _inserted,
    _encoded,
    lambda rng, _: rng.randbytes(rng.randrange(400)),
    lambda _, data: data + data,
)
"""What changes bytes, whatever they mean."""
