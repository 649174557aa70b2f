"""Request totals per API since the start, as a JSON snapshot contains them."""

from __future__ import annotations

from ._histogram import upper_of
from ._request_metrics import RequestSource
from ._request_times import PHASES, STEP_NS, TOTAL

_MS = 1e6  # in nanoseconds


# The error name of a response without any error.
_NO_ERROR = "NONE"


def api_totals(source: RequestSource) -> list[dict[str, object]]:
    """Return one row for each API that was requested at least once.

    A row has the API's ``name``, the finished ``requests``, their ``bytes``, the ``errors`` in the
    responses, in ``phases_ms`` the sum of each phase by Kafka's name, and in ``total_ms`` the
    distribution of total times: ascending pairs of a bucket's longest time and its count.
    """
    errors: dict[str, int] = {}
    for (name, error), count in source.errors().items():
        if error != _NO_ERROR:
            errors[name] = errors.get(name, 0) + count
    return [
        {
            "name": times.names[0],
            "requests": times.requests,
            "bytes": times.bytes,
            "errors": errors.get(times.names[0], 0),
            "phases_ms": {name: times.sum_ns(phase) / _MS for phase, name in enumerate(PHASES)},
            "total_ms": [
                (upper_of(bucket) * STEP_NS / _MS, count)
                for bucket, count in enumerate(times.counts(TOTAL))
                if count
            ],
        }
        for times in source.request_times()
        if times.requests
    ]
