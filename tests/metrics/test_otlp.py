"""OpenTelemetry's wire."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from support.otlp import Told, fields, told
from trionet.metrics._otlp import Point, PointKind, metrics_data

NAMES = st.text(max_size=10) | st.just("long" * 50)
POINTS = st.builds(
    Point,
    NAMES,
    st.sampled_from(PointKind),
    st.floats(allow_nan=False),
    st.integers(0, 2**63),
    st.integers(0, 2**63),
    st.dictionaries(NAMES, NAMES, max_size=3),
)


def test_the_bytes_of_one_number() -> None:
    """Written out by the definitions of OpenTelemetry's messages."""
    point = Point("n", PointKind.CUMULATIVE, 1.5, 1, 2, {"k": "v"})

    number = (
        b"\x11" + (1).to_bytes(8, "little")  # start_time_unix_nano = 2, fixed64
        + b"\x19" + (2).to_bytes(8, "little")  # time_unix_nano = 3, fixed64
        + b"\x21" + struct.pack("<d", 1.5)  # as_double = 4
        + b"\x3a\x08\x0a\x01k\x12\x03\x0a\x01v"  # attributes = 7: key, value.string_value
    )  # fmt: skip
    total = b"\x0a" + bytes([len(number)]) + number + b"\x10\x02\x18\x01"  # points, 2, true
    metric = b"\x0a\x01n" + b"\x3a" + bytes([len(total)]) + total  # name = 1, sum = 7
    scope = b"\x12" + bytes([len(metric)]) + metric  # metrics = 2
    resource = b"\x0a\x00" + b"\x12" + bytes([len(scope)]) + scope  # resource, scope_metrics
    assert b"\x0a" + bytes([len(resource)]) + resource == metrics_data([point], {})


@given(st.lists(POINTS, max_size=5))
def test_what_is_written_is_read(points: list[Point]) -> None:
    expected: dict[str, list[Told]] = {}
    for each in points:
        is_gauge = each.kind is PointKind.GAUGE
        start = 0 if is_gauge else each.start_ns
        number = Told(each.value, each.kind.value, start, each.time_ns, dict(each.attributes))
        expected.setdefault(each.name, []).append(number)

    assert expected == told(metrics_data(points, {}))


def test_what_is_true_of_the_sender_stands_before_its_numbers() -> None:
    data = metrics_data([], {"client_rack": "r1"})

    [resource_metrics] = fields(data)[1]
    [resource] = fields(resource_metrics)[1]
    [attribute] = fields(resource)[1]
    assert {1: [b"client_rack"], 2: [b"\x0a\x02r1"]} == fields(attribute)
