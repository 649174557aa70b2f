"""The requests of each API since the start, for a snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from trionet.metrics._families import Labels
from trionet.metrics._request_metrics import api_totals
from trionet.metrics._request_times import (
    LOCAL,
    PHASES,
    STEP_NS,
    TOTAL,
    RequestTimes,
    TimedRequest,
    count_finished,
)


class Requests:
    """Who counts requests, of two APIs."""

    def __init__(self, *kinds: RequestTimes) -> None:
        self._kinds = kinds

    def request_times(self) -> Iterable[RequestTimes]:
        return self._kinds

    def requests(self) -> Mapping[Labels, int]:
        return {}

    def deprecated_requests(self) -> Mapping[Labels, int]:
        return {}

    def errors(self) -> Mapping[Labels, int]:
        return {
            ("Fetch", "NONE"): 7,
            ("Fetch", "OFFSET_OUT_OF_RANGE"): 2,
            ("Fetch", "NOT_COORDINATOR"): 1,
            ("Produce", "NONE"): 4,
        }


def finished(times: RequestTimes, *local_ns: int) -> None:
    """Requests that were handled for so long, and waited for nothing."""
    requests = []
    for duration in local_ns:
        request = TimedRequest()
        request.times = times
        request.request_bytes = 100
        request.received_ns = request.taken_ns = 1000
        request.handled_ns = request.responded_ns = 1000 + duration
        request.picked_up_ns = request.sent_ns = 1000 + duration
        requests.append(request)
    count_finished(requests)


def test_sums_and_counts_are_those_of_the_metrics() -> None:
    times, unused = RequestTimes("Fetch", "FetchConsumer"), RequestTimes("Produce")
    finished(times, 3 * STEP_NS, 3 * STEP_NS, 10 * STEP_NS)

    [fetch] = api_totals(Requests(times, unused))

    assert ("Fetch", 3, 300, 3) == (
        fetch["name"],
        fetch["requests"],
        fetch["bytes"],
        fetch["errors"],
    )
    assert [(3 * STEP_NS / 1e6, 2), (10 * STEP_NS / 1e6, 1)] == fetch["total_ms"]
    phases = dict.fromkeys(PHASES, 0.0)
    phases[PHASES[LOCAL]] = phases[PHASES[TOTAL]] = 16 * STEP_NS / 1e6
    assert phases == fetch["phases_ms"]
