"""Requests that name what there is, and say the greatest and the smallest numbers about it."""

from __future__ import annotations

import importlib
import random
import types
from typing import Any

from protocol.samples import api_of
from support.hostile_batches import changed
from support.logs import batch
from trionet.protocol.unrolling._layout import CODES, Field, Struct

_BITS = {"b": 8, "h": 16, "H": 15, "i": 32, "q": 64}
_HEADER = {
    "base_offset": 64,
    "attributes": 16,
    "last_offset_delta": 32,
    "base_timestamp": 64,
    "max_timestamp": 64,
    "producer_id": 64,
    "producer_epoch": 16,
    "base_sequence": 32,
    "count": 32,
}
_TEXTS = ("t", "t", "t", "t", "t", "g", "", "consumer", "range", "retention.ms", "segment.bytes")


class ExtremeMessages:
    """Makes requests of any API and version.

    Args:
        rng: decides about every field.
        topic_id: of the topic ``t``.
    """

    def __init__(self, rng: random.Random, topic_id: bytes) -> None:
        self._rng = rng
        self._topic_id = topic_id

    def request(self, name: str, version: int) -> Any:
        """A request of the API with this module's name."""
        module = importlib.import_module(f"trionet.protocol.messages.{name}")
        [request] = [each for each in api_of(name).messages.values() if each.side == "request"]
        return self._message(request.versions[version], module)

    def _message(self, struct: Struct, module: types.ModuleType) -> Any:
        # Requests go further if half of what they say is what clients say.
        values = {
            field.name: self._field(field, module)
            for field in struct.fields
            if field.struct is not None or field.array or self._rng.random() < 0.5
        }
        return getattr(module, struct.name)(**values)

    def _field(self, field: Field, module: types.ModuleType) -> Any:
        if field.nullable and self._rng.random() < 0.2:
            return None
        if field.array:
            return [self._value(field, module) for _ in range(self._rng.choice((1, 1, 1, 2, 0)))]
        return self._value(field, module)

    def _value(self, field: Field, module: types.ModuleType) -> Any:
        rng = self._rng
        if field.struct is not None:
            return self._message(field.struct, module)
        if field.kind == "bool":
            return rng.random() < 0.5
        if field.kind == "string":
            if rng.random() < 0.1:
                return str(self._number(64) * rng.choice((1, 10**20)))
            return rng.choice(_TEXTS)
        if field.kind in ("bytes", "records"):
            fields = {
                name: self._number(bits) for name, bits in _HEADER.items() if rng.random() < 0.3
            }
            return changed(batch(), **fields) if rng.random() < 0.7 else b""
        if field.kind == "uuid":
            return rng.choice((self._topic_id, self._topic_id, bytes(16)))
        if field.kind == "float64":
            return rng.choice((0.0, 1e308, float("nan"), -1.0))
        return self._number(_BITS[CODES[field.kind]])

    def _number(self, bits: int) -> int:
        top: int = 2 ** (bits - 1)
        return self._rng.choice((0, 0, 0, 1, 1, -1, 2, top - 1, top - 1, -top, top - 2))
