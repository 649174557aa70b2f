"""Reads what clients push, field by field, with nothing but the rules of protocol buffers."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple


def fields(data: bytes) -> dict[int, list[Any]]:
    """The values of a message by their fields: numbers, eight bytes, or bytes."""
    found: dict[int, list[Any]] = {}
    pos = 0
    while pos < len(data):
        head, pos = _varint(data, pos)
        value: Any
        if head & 7 == 0:
            value, pos = _varint(data, pos)
        elif head & 7 == 1:
            value, pos = data[pos : pos + 8], pos + 8
        else:
            assert head & 7 == 2
            count, pos = _varint(data, pos)
            value, pos = data[pos : pos + count], pos + count
        found.setdefault(head >> 3, []).append(value)
    assert len(data) == pos
    return found


def _varint(data: bytes, pos: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[pos]
        value |= (byte & 127) << shift
        pos, shift = pos + 1, shift + 7
        if byte < 128:
            return value, pos


class Told(NamedTuple):
    """One number; `temporality` is 0 for a gauge."""

    value: float
    temporality: int
    start_ns: int
    time_ns: int
    attributes: dict[str, str]


def told(data: bytes) -> dict[str, list[Told]]:
    """The numbers of a MetricsData by the names of their metrics."""
    found: dict[str, list[Told]] = {}
    for resource_metrics in fields(data)[1]:
        for scope_metrics in fields(resource_metrics)[2]:
            for each in fields(scope_metrics).get(2, []):
                metric = fields(each)
                [name] = metric[1]
                found.setdefault(name.decode(), []).append(_number(metric))
    return found


def _number(metric: dict[int, list[Any]]) -> Told:
    is_sum = 7 in metric
    [data] = metric[7 if is_sum else 5]
    about = fields(data)
    [point] = about[1]
    number = fields(point)
    assert not is_sum or [1] == about[3], "sums only grow"
    return Told(
        struct.unpack("<d", number[4][0])[0],
        about[2][0] if is_sum else 0,
        int.from_bytes(number.get(2, [b""])[0], "little"),
        int.from_bytes(number[3][0], "little"),
        dict(_attribute(each) for each in number.get(7, [])),
    )


def _attribute(data: bytes) -> tuple[str, str]:
    pair = fields(data)
    return pair[1][0].decode(), fields(pair[2][0])[1][0].decode()
