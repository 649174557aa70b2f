"""Kafka's request metrics, made of what a router of requests counts.

The requests of each API since the start, for a snapshot.
"""

from __future__ import annotations

from collections.abc import Mapping

from trionet.metrics._registry import Family, Registry, Snapshot
from trionet.metrics._request_metrics import RequestMetrics, api_totals
from trionet.metrics._request_times import (
    LOCAL,
    PHASES,
    STEP_NS,
    TOTAL,
    RequestTimes,
    TimedRequest,
    count_finished,
)

PREFIX = "kafka_network_requestmetrics_"
MICROSECOND = 1000


class Router:
    """Counts requests, as a broker does."""

    def __init__(self, *kinds: RequestTimes) -> None:
        self.kinds = kinds
        self.counts: dict[tuple[str, ...], int] = {}
        self.deprecated: dict[tuple[str, ...], int] = {}
        self.found_errors: dict[tuple[str, ...], int] = {}

    def request_times(self) -> tuple[RequestTimes, ...]:
        return self.kinds

    def requests(self) -> Mapping[tuple[str, ...], int]:
        return self.counts

    def deprecated_requests(self) -> Mapping[tuple[str, ...], int]:
        return self.deprecated

    def errors(self) -> Mapping[tuple[str, ...], int]:
        return self.found_errors


def registry_of(router: Router) -> Registry:
    registry = Registry()
    registry.register(RequestMetrics(router).collect)
    registry.snapshot(0)
    return registry


def serve(times: RequestTimes, *local_ns: int, size: int = 100) -> None:
    """Finish requests that took so long to be handled."""
    finished = []
    for duration in local_ns:
        request = TimedRequest()
        request.times = times
        request.request_bytes = size
        request.received_ns = request.taken_ns = 1_000_000
        request.handled_ns = request.responded_ns = 1_000_000 + duration
        request.picked_up_ns = request.sent_ns = request.responded_ns
        finished.append(request)
    count_finished(finished)


def quantile(family: Family, name: str, quantile: str) -> float:
    [value] = [
        sample.value
        for sample in family.samples
        if sample.labels == (name,) and sample.quantile == quantile
    ]
    return value


def sums(snapshot: Snapshot, name: str) -> dict[tuple[str, ...], float]:
    return {
        sample.labels: sample.value
        for sample in snapshot[PREFIX + name].samples
        if sample.suffix == "_sum"
    }


def test_times_are_milliseconds_with_a_fraction() -> None:
    times = RequestTimes("Produce")
    registry = registry_of(Router(times))

    serve(times, *[100 * MICROSECOND] * 99, 3000 * MICROSECOND)
    snapshot = registry.snapshot(5)

    local = snapshot[f"{PREFIX}localtimems"]
    assert 100 == local.of("Produce")
    assert 0.1 <= quantile(local, "Produce", "0.50") <= 0.1 * 9 / 8
    assert 3 <= quantile(local, "Produce", "0.999") <= 3 * 9 / 8
    assert {("Produce",): 12.9} == sums(snapshot, "localtimems")
    assert {("Produce",): 0} == sums(snapshot, "remotetimems")
    assert {("Produce",): 12.9} == sums(snapshot, "totaltimems")


def test_a_fetch_has_two_names() -> None:
    times = RequestTimes("Fetch", "FetchConsumer")
    registry = registry_of(Router(times))

    serve(times, MICROSECOND)

    total = registry.snapshot(5)[f"{PREFIX}totaltimems"]
    assert (1, 1) == (total.of("Fetch"), total.of("FetchConsumer"))


def test_sizes_are_of_requests() -> None:
    times = RequestTimes("Produce")
    registry = registry_of(Router(times))

    serve(times, MICROSECOND, MICROSECOND, size=1000)
    snapshot = registry.snapshot(5)

    assert 2 == snapshot[f"{PREFIX}requestbytes"].of("Produce")
    assert {("Produce",): 2000} == sums(snapshot, "requestbytes")


def test_nothing_is_ever_converted() -> None:
    produce, metadata = RequestTimes("Produce"), RequestTimes("Metadata")
    registry = registry_of(Router(produce, metadata))

    serve(produce, MICROSECOND)
    serve(metadata, MICROSECOND)
    snapshot = registry.snapshot(5)

    for name in ("messageconversionstimems", "temporarymemorybytes"):
        assert {("Produce",): 0} == sums(snapshot, name)
        assert 1 == snapshot[PREFIX + name].of("Produce")
        assert 0 == quantile(snapshot[PREFIX + name], "Produce", "0.999")


def test_requests_are_counted_by_version() -> None:
    """P4: and those of a deprecated version by their client, too."""
    router = Router()
    registry = registry_of(router)
    router.counts = {("Produce", "12"): 50, ("Produce", "3"): 5}
    router.deprecated = {("Produce", "3", "librdkafka", "1.0"): 5}

    snapshot = registry.snapshot(10)

    requests, rates = snapshot[f"{PREFIX}requests_total"], snapshot[f"{PREFIX}requestspersec"]
    assert (50, 5) == (requests.of("Produce", "12"), requests.of("Produce", "3"))
    assert (5, 0.5) == (rates.of("Produce", "12", "1m"), rates.of("Produce", "3", "15m"))
    deprecated = snapshot[f"{PREFIX}deprecatedrequests_total"]
    assert [("Produce", "3", "librdkafka", "1.0")] == [s.labels for s in deprecated.samples]
    assert 5 == deprecated.of("Produce", "3", "librdkafka", "1.0")


def test_errors_are_counted_by_name() -> None:
    router = Router()
    registry = registry_of(router)
    router.found_errors = {("Produce", "NONE"): 9, ("Produce", "CORRUPT_MESSAGE"): 1}

    errors = registry.snapshot(10)[f"{PREFIX}errors_total"]

    assert (9, 1) == (errors.of("Produce", "NONE"), errors.of("Produce", "CORRUPT_MESSAGE"))


def test_sums_and_counts_are_those_of_the_metrics() -> None:
    times, unused = RequestTimes("Fetch", "FetchConsumer"), RequestTimes("Produce")
    serve(times, 3 * STEP_NS, 3 * STEP_NS, 10 * STEP_NS)
    router = Router(times, unused)
    router.found_errors = {
        ("Fetch", "NONE"): 7,
        ("Fetch", "OFFSET_OUT_OF_RANGE"): 2,
        ("Fetch", "NOT_COORDINATOR"): 1,
        ("Produce", "NONE"): 4,
    }

    [fetch] = api_totals(router)

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
