"""Whether the results are what the log's records say: counts exactly, percentiles closely."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC
from typing import Any

import attrs

from telemetry.truth import Exact, Key

#: By which part of itself a percentile may be wrong.
ERROR_MAX = 0.01
_SHOWN = 10


@attrs.define
class Compared:
    """What a comparison found.

    Attributes:
        rows: how many rows of the results were looked at.
        percentiles: how many percentiles and maxima were.
        worst: the largest relative error among them.
        wrong: what is not as it must be, in words.
    """

    rows: int = 0
    percentiles: int = 0
    worst: float = 0.0
    wrong: list[str] = attrs.field(factory=list)

    def told(self) -> list[str]:
        """The first of what is wrong, and how much more there is."""
        more = len(self.wrong) - _SHOWN
        return self.wrong[:_SHOWN] + ([f"and {more} more"] if more > 0 else [])


def compare(exact: Mapping[Key, Exact], table: Any) -> Compared:
    """Compare the table ``requests`` of the results with what is exactly so."""
    compared = Compared()
    missing = dict(exact)
    for row in table.to_pylist():
        key = (row["window"].astimezone(UTC), row["api"], row["client_id"], row["listener"])
        name = f"{key[0]:%H:%M} {key[1]} of {key[2]!r} by {key[3]}"
        expected = missing.pop(key, None)
        if expected is None:
            compared.wrong.append(f"{name}: stands twice" if key in exact else f"{name}: never was")
            continue
        compared.rows += 1
        _compare_row(compared, name, expected, row)
    compared.wrong += [f"{key}: is missing" for key in missing]
    return compared


def _compare_row(compared: Compared, name: str, expected: Exact, row: Mapping[str, Any]) -> None:
    for column in ("records", "request_bytes", "response_bytes"):
        if row[column] != getattr(expected, column):
            compared.wrong.append(
                f"{name}: {column} is {row[column]:,}, not {getattr(expected, column):,}"
            )
    for column, exactly in expected.percentiles.items():
        compared.percentiles += 1
        error = abs(row[column] - exactly) / max(exactly, 1)
        compared.worst = max(compared.worst, error)
        if error > ERROR_MAX:
            compared.wrong.append(f"{name}: {column} is {row[column]}, exactly {exactly}")
