"""Prometheus's text format, version 0.0.4: the response of ``/metrics``.

Each family has ``# HELP``, ``# TYPE``, and one line per sample. Labels are in the metric's order,
with the quantile last. Empty labels are omitted: to Prometheus, they equal missing labels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from ._families import Family, Sample

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

# Below this a float represents every whole number exactly.
_WHOLE_MAX = 2**53

_IN_HELP = str.maketrans({"\\": r"\\", "\n": r"\n"})
_IN_LABELS = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


def exposition(snapshot: Mapping[str, Family]) -> Iterator[str]:
    """Yield the text of a snapshot, one family at a time, omitting families without samples.

    Formatting a snapshot with many labels takes milliseconds, so the caller can let other tasks run
    between families.
    """
    for family in snapshot.values():
        if family.samples:
            yield "".join(_lines(family))


def _lines(family: Family) -> Iterator[str]:
    metric = family.metric
    yield f"# HELP {metric.name} {metric.help.translate(_IN_HELP)}\n"
    yield f"# TYPE {metric.name} {metric.kind}\n"
    for sample in family.samples:
        labels = _labels(metric.labels, sample)
        yield f"{metric.name}{sample.suffix}{labels} {number(sample.value)}\n"


def _labels(names: tuple[str, ...], sample: Sample) -> str:
    pairs = [
        f'{name}="{value.translate(_IN_LABELS)}"'
        for name, value in zip(names, sample.labels, strict=True)
        if value
    ]
    if sample.quantile:
        pairs.append(f'quantile="{sample.quantile}"')
    return f"{{{','.join(pairs)}}}" if pairs else ""


def number(value: float) -> str:
    """Format a number so that Prometheus, with Go's ParseFloat, reads it back exactly."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if abs(value) < _WHOLE_MAX and value == int(value):
        return str(int(value))
    return repr(float(value))
