"""Random messages of ours, for the versions that kio does not have."""

from __future__ import annotations

import random
import types
from typing import Any

from protocol.kio_values import COUNTS, TEXTS, random_integer
from trionet.protocol.unrolling._layout import CODES, Field, Struct

_BITS = {"b": 8, "h": 16, "i": 32, "q": 64}


def random_message(struct: Struct, module: types.ModuleType, rng: random.Random) -> Any:
    """A message of ``module``'s class with every field random, at the version of ``struct``."""
    values = {field.name: _random_field(field, module, rng) for field in struct.fields}
    return getattr(module, struct.name)(**values)


def _random_field(field: Field, module: types.ModuleType, rng: random.Random) -> Any:
    if field.nullable and rng.random() < 0.3:
        return None
    if field.array:
        return [_random_value(field, module, rng) for _ in range(rng.choice(COUNTS))]
    return _random_value(field, module, rng)


def _random_value(field: Field, module: types.ModuleType, rng: random.Random) -> Any:
    if field.struct is not None:
        return random_message(field.struct, module, rng)
    if field.kind == "bool":
        return rng.random() < 0.5
    if field.kind == "string":
        return rng.choice(TEXTS)
    if field.kind in ("bytes", "records"):
        return rng.randbytes(rng.choice((0, 1, 16, 126, 127, 128, 400)))
    return random_integer(_BITS[CODES[field.kind]], rng)
