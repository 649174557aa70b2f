"""An encoder of metrics for OpenTelemetry: ``opentelemetry.proto.metrics.v1.MetricsData``.

It supports only the metrics that Kafka's clients push (KIP-714): gauges and monotonic sums with one
point each. Since these need only a few protobuf fields, no library is used.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final

import attrs

_VARINT, _FIXED64, _BYTES = 0, 1, 2
_double = struct.Struct("<d").pack
_fixed64 = struct.Struct("<Q").pack

# Fields, by the names of OpenTelemetry's messages.
_DATA_RESOURCE_METRICS: Final = 1
_RESOURCE_METRICS_RESOURCE: Final = 1
_RESOURCE_METRICS_SCOPE_METRICS: Final = 2
_RESOURCE_ATTRIBUTES: Final = 1
_SCOPE_METRICS_METRICS: Final = 2
_METRIC_NAME: Final = 1
_METRIC_GAUGE: Final = 5
_METRIC_SUM: Final = 7
_POINTS: Final = 1
_SUM_TEMPORALITY: Final = 2
_SUM_IS_MONOTONIC: Final = 3
_POINT_START_NS: Final = 2
_POINT_TIME_NS: Final = 3
_POINT_DOUBLE: Final = 4
_POINT_ATTRIBUTES: Final = 7
_KEY: Final = 1
_VALUE: Final = 2
_VALUE_STRING: Final = 1


class PointKind(Enum):
    """How a value is aggregated; the numbers are OpenTelemetry's aggregation temporalities."""

    GAUGE = 0
    DELTA = 1
    CUMULATIVE = 2


@attrs.frozen
class Point:
    """One measured value.

    Attributes:
        name: the metric's name.
        kind: how the value is aggregated.
        value: the measured value.
        start_ns: the start of the interval that a sum covers, in ns since the epoch.
        time_ns: when the value was measured, in ns since the epoch.
        attributes: the attributes that distinguish the point from other points of the metric.
    """

    name: str
    kind: PointKind
    value: float
    start_ns: int
    time_ns: int
    attributes: Mapping[str, str] = attrs.field(factory=dict)


def metrics_data(points: Iterable[Point], resource: Mapping[str, str]) -> bytes:
    """Encode points as one ``MetricsData`` message.

    Args:
        points: the points to encode.
        resource: the attributes of the sender.
    """
    about = b"".join(_sub(_RESOURCE_ATTRIBUTES, _attribute(*pair)) for pair in resource.items())
    scope = b"".join(_sub(_SCOPE_METRICS_METRICS, _metric(point)) for point in points)
    found = _sub(_RESOURCE_METRICS_RESOURCE, about) + _sub(_RESOURCE_METRICS_SCOPE_METRICS, scope)
    return _sub(_DATA_RESOURCE_METRICS, found)


def _metric(point: Point) -> bytes:
    name = _text(_METRIC_NAME, point.name)
    data = _sub(_POINTS, _point(point))
    if point.kind is PointKind.GAUGE:
        return name + _sub(_METRIC_GAUGE, data)
    data += _number(_SUM_TEMPORALITY, point.kind.value) + _number(_SUM_IS_MONOTONIC, 1)
    return name + _sub(_METRIC_SUM, data)


def _point(point: Point) -> bytes:
    attributes = (_sub(_POINT_ATTRIBUTES, _attribute(*pair)) for pair in point.attributes.items())
    start = b""
    if point.kind is not PointKind.GAUGE:
        start = _head(_POINT_START_NS, _FIXED64) + _fixed64(point.start_ns)
    time = _head(_POINT_TIME_NS, _FIXED64) + _fixed64(point.time_ns)
    value = _head(_POINT_DOUBLE, _FIXED64) + _double(point.value)
    return start + time + value + b"".join(attributes)


def _attribute(key: str, value: str) -> bytes:
    return _text(_KEY, key) + _sub(_VALUE, _text(_VALUE_STRING, value))


def _text(field: int, value: str) -> bytes:
    return _sub(field, value.encode())


def _sub(field: int, content: bytes) -> bytes:
    return _head(field, _BYTES) + _varint(len(content)) + content


def _number(field: int, value: int) -> bytes:
    return _head(field, _VARINT) + _varint(value)


def _head(field: int, kind: int) -> bytes:
    return _varint(field << 3 | kind)


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    found.append(value)
    return bytes(found)
