"""The requests of each API since the start, as a snapshot has them in JSON."""

from __future__ import annotations

from collections.abc import Iterable

from .histogram import upper_of
from .request_times import PHASES, STEP_NS, TOTAL, RequestTimes

_MS = 1e6  # in nanoseconds


def api_totals(kinds: Iterable[RequestTimes]) -> list[dict[str, object]]:
    """What was asked for at least once.

    Each has its ``name``, the finished ``requests``, their ``bytes``, in ``phases_ms`` the sum of
    each phase by Kafka's name of it, and in ``total_ms`` how many took how long in all: pairs of
    the longest time of a bucket and its count, ascending.
    """
    return [
        {
            "name": times.names[0],
            "requests": times.requests,
            "bytes": times.bytes,
            "phases_ms": {name: times.sum_ns(phase) / _MS for phase, name in enumerate(PHASES)},
            "total_ms": [
                (upper_of(bucket) * STEP_NS / _MS, count)
                for bucket, count in enumerate(times.counts(TOTAL))
                if count
            ],
        }
        for times in kinds
        if times.requests
    ]
