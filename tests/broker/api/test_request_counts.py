"""The counts of a broker's requests, and the metrics that are made of them."""

from __future__ import annotations

from trionet.broker.api._request_counts import OTHER_SOFTWARE, SOFTWARE_MAX, RequestCounts
from trionet.metrics._registry import Registry
from trionet.metrics._request_metrics import RequestMetrics
from trionet.protocol import error_codes
from trionet.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsResponse

APIS = ("Produce", "Fetch", "CreateTopics")


def test_a_version_has_one_object_for_its_counts() -> None:
    counts = RequestCounts(APIS)

    route = counts.route("Produce", 12)
    route.requests += 2

    assert route is counts.route("Produce", 12)
    assert route.times is counts.route("Produce", 3).times
    assert {("Produce", "12"): 2, ("Produce", "3"): 0} == counts.requests()


def test_a_fetch_counts_under_two_names() -> None:
    counts = RequestCounts(APIS)

    counts.route("Fetch", 17).requests += 1

    assert {("Fetch", "17"): 1, ("FetchConsumer", "17"): 1} == counts.requests()
    assert ("Fetch", "FetchConsumer") == counts.route("Fetch", 4).times.names


def test_calls_are_reported_by_api() -> None:
    counts = RequestCounts(APIS)
    for version in (3, 12):
        counts.route("Produce", version).requests += 2

    assert {"Produce": 4} == counts.calls()


def test_every_api_is_timed_from_the_start() -> None:
    assert [("Produce",), ("Fetch", "FetchConsumer"), ("CreateTopics",)] == [
        times.names for times in RequestCounts(APIS).request_times()
    ]


def test_errors_are_counted_by_name_and_none_is_a_response_without() -> None:
    counts = RequestCounts(APIS)
    route = counts.route("CreateTopics", 7)
    for codes in ((0, 0), (36, 0, 36), (17,)):
        route.responses += 1
        route.count_errors(
            CreateTopicsResponse(topics=[CreatableTopicResult(error_code=code) for code in codes])
        )

    assert {
        ("CreateTopics", "NONE"): 1,
        ("CreateTopics", error_codes.name_of(36)): 2,
        ("CreateTopics", error_codes.name_of(17)): 1,
    } == counts.errors()


def test_errors_of_all_versions_are_one_count() -> None:
    counts = RequestCounts(APIS)
    for version in (2, 7):
        route = counts.route("CreateTopics", version)
        route.responses += 1

    assert {("CreateTopics", "NONE"): 2} == counts.errors()


def test_who_knows_of_failures_is_not_searched() -> None:
    counts = RequestCounts(APIS)

    assert [False, False, True] == [counts.route(name, 4).looks_for_errors for name in APIS]


def test_clients_of_a_deprecated_version_are_counted() -> None:
    """P4: an old version is also counted by its client, a current one is not."""
    counts = RequestCounts(APIS, deprecated=[("Produce", 3)])
    old, current = counts.route("Produce", 3), counts.route("Produce", 12)

    assert (True, False) == (old.is_deprecated, current.is_deprecated)
    old.note_deprecated(("librdkafka", "1.0"))
    old.note_deprecated(("librdkafka", "1.0"))

    assert {("Produce", "3", "librdkafka", "1.0"): 2} == counts.deprecated_requests()


def test_clients_cannot_fill_the_memory_with_their_names() -> None:
    counts = RequestCounts(APIS, deprecated=[("Produce", 3)])
    old = counts.route("Produce", 3)

    for number in range(SOFTWARE_MAX + 50):
        old.note_deprecated((f"client-{number}", "1"))

    assert SOFTWARE_MAX + 1 == len(old.software)
    assert 50 == old.software[OTHER_SOFTWARE]


def test_it_is_what_the_metrics_of_requests_are_made_of() -> None:
    counts = RequestCounts(APIS)
    registry = Registry()
    registry.register(RequestMetrics(counts).collect)

    counts.route("Produce", 12).requests += 3
    snapshot = registry.snapshot(0)

    assert 3 == snapshot["kafka_network_requestmetrics_requests_total"].of("Produce", "12")
    assert 0 == snapshot["kafka_network_requestmetrics_totaltimems"].of("FetchConsumer")
