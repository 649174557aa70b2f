"""Kafka's names in Prometheus: those that dashboards for Kafka ask for.

The text for Prometheus, read back by Prometheus's own parser.
"""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from support.kafka_names import SELECTOR_METRICS, SERVER_METRICS
from support.openmetrics import openmetrics_families
from trionet.metrics._kafka_names import IO_RATIO, IO_WAIT_RATIO
from trionet.metrics._prometheus import exposition, gauge, meter, number, sensor, summary
from trionet.metrics._registry import Family, Kind, Metric, Sample, Snapshot

EVERY = [*SERVER_METRICS, *SELECTOR_METRICS]


def test_a_histogram_keeps_its_name() -> None:
    metric = summary("network", "RequestMetrics", "TotalTimeMs", "Time.", "request")

    assert "kafka_network_requestmetrics_totaltimems" == metric.name
    assert "kafka.network:type=RequestMetrics,name=TotalTimeMs" == metric.kafka


def test_a_percentage_is_one_by_name_only() -> None:
    metric = gauge("network", "SocketServer", "NetworkProcessorAvgIdlePercent", "Idle.")

    assert "kafka_network_socketserver_networkprocessoravgidle_percent" == metric.name


def test_a_meter_is_a_count_and_a_rate() -> None:
    count, rate = meter("network", "RequestMetrics", "RequestsPerSec", "Requests.", "request")

    assert ("kafka_network_requestmetrics_requests_total", Kind.COUNTER) == (count.name, count.kind)
    assert ("kafka_network_requestmetrics_requestspersec", Kind.GAUGE) == (rate.name, rate.kind)
    assert (("request",), ("request", "window")) == (count.labels, rate.labels)


def test_a_metric_of_kafkas_own_library_has_its_group() -> None:
    metric = sensor(Kind.GAUGE, "socket-server-metrics", "connection-count", "Open.")

    assert "kafka_server_socket_server_metrics_connection_count" == metric.name
    assert "kafka.server:type=socket-server-metrics,connection-count" == metric.kafka


def test_a_name_is_given_once() -> None:
    names = [metric.name for metric in EVERY]

    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize("metric", EVERY, ids=lambda metric: metric.name)
def test_a_name_is_one_for_prometheus_and_explained(metric: object) -> None:
    [found] = [known for known in EVERY if known is metric]

    assert re.fullmatch(r"kafka_[a-z0-9_]+", found.name)
    assert all(re.fullmatch(r"[a-zA-Z]+", label) for label in found.labels)
    assert re.fullmatch(r"[*A-Z].*\.", found.help)


def test_the_old_names_of_the_io_times_are_marked_as_such() -> None:
    """S35."""
    deprecated = {metric.name for metric in EVERY if metric.help.startswith("*Deprecated*")}

    prefix = "kafka_server_socket_server_metrics_"
    assert {f"{prefix}iotime_total", f"{prefix}io_waittime_total"} == deprecated
    assert {IO_RATIO.name, IO_WAIT_RATIO.name} == {f"{prefix}io_ratio", f"{prefix}io_wait_ratio"}


NAMES = st.from_regex(r"[a-z_:][a-z0-9_:]{0,20}", fullmatch=True)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NUMBERS = st.floats() | st.integers(-(2**63), 2**63)


def text(*families: Family) -> str:
    return "".join(exposition(Snapshot(0, families)))


def test_a_family_is_help_type_and_samples() -> None:
    requests = Metric("requests_total", Kind.COUNTER, "Requests.", ("request", "version"))
    waiting = Metric("waiting", Kind.GAUGE, "What waits.")

    actual = text(
        Family(waiting, (Sample((), 0.5),)),
        Family(requests, (Sample(("Fetch", "17"), 3), Sample(("Produce", "12"), 4))),
    )

    assert (
        "# HELP requests_total Requests.\n"
        "# TYPE requests_total counter\n"
        'requests_total{request="Fetch",version="17"} 3\n'
        'requests_total{request="Produce",version="12"} 4\n'
        "# HELP waiting What waits.\n"
        "# TYPE waiting gauge\n"
        "waiting 0.5\n"
    ) == actual


def test_openmetrics_names_the_family_of_a_counter_without_its_suffix_and_has_an_end() -> None:
    families = {
        each.name: Family(each, (Sample((), 3),))
        for each in (
            Metric("requests_total", Kind.COUNTER, 'Requests of "all".'),
            Metric("killed_count", Kind.COUNTER, "Killed."),
            Metric("waiting", Kind.GAUGE, "What waits."),
        )
    }

    actual = "".join(exposition(families, is_openmetrics=True))

    assert (
        '# HELP requests Requests of \\"all\\".\n'
        "# TYPE requests counter\n"
        "requests_total 3\n"
        "# HELP killed_count Killed.\n"
        "# TYPE killed_count unknown\n"
        "killed_count 3\n"
        "# HELP waiting What waits.\n"
        "# TYPE waiting gauge\n"
        "waiting 3\n"
        "# EOF\n"
    ) == actual
    assert [each.documentation for each in openmetrics_families(actual)] == [
        'Requests of "all".',
        "Killed.",
        "What waits.",
    ]


def test_a_summary_has_quantiles_a_sum_and_a_count() -> None:
    time = Metric("time_ms", Kind.SUMMARY, "Time.", ("request",))

    actual = text(
        Family(
            time,
            (
                Sample(("Fetch",), 0.25, quantile="0.50"),
                Sample(("Fetch",), math.nan, quantile="0.999"),
                Sample(("Fetch",), 7.5, "_sum"),
                Sample(("Fetch",), 30, "_count"),
            ),
        )
    )

    assert (
        "# HELP time_ms Time.\n"
        "# TYPE time_ms summary\n"
        'time_ms{request="Fetch",quantile="0.50"} 0.25\n'
        'time_ms{request="Fetch",quantile="0.999"} NaN\n'
        'time_ms_sum{request="Fetch"} 7.5\n'
        'time_ms_count{request="Fetch"} 30\n'
    ) == actual


def test_a_family_without_samples_is_left_out() -> None:
    assert "" == text(Family(Metric("a", Kind.GAUGE, "A."), ()))


def test_an_empty_label_is_left_out() -> None:
    metric = Metric("rate", Kind.GAUGE, "A rate.", ("listener", "ip"))

    actual = text(Family(metric, (Sample(("A", ""), 1), Sample(("", "::1"), 2))))

    assert ['rate{listener="A"} 1', 'rate{ip="::1"} 2'] == actual.splitlines()[2:]


def test_what_would_end_a_label_or_a_line_is_escaped() -> None:
    metric = Metric("m", Kind.GAUGE, 'Quotes " stay, \\ and\nlines do not.', ("name",))

    actual = text(Family(metric, (Sample(('a"b\\c\nd',), 1),)))

    assert [
        '# HELP m Quotes " stay, \\\\ and\\nlines do not.',
        "# TYPE m gauge",
        'm{name="a\\"b\\\\c\\nd"} 1',
    ] == actual.splitlines()


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0, "0"),
        (-0.5, "-0.5"),
        (3.0, "3"),
        (2**53 + 1, "9007199254740992.0"),
        (1e300, "1e+300"),
        (2**63 - 1, "9.223372036854776e+18"),
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
        (math.nan, "NaN"),
    ],
)
def test_a_number_is_written_as_prometheus_reads_it(value: float, written: str) -> None:
    assert written == number(value)


@given(NUMBERS)
def test_a_number_is_read_back_as_it_was(value: float) -> None:
    actual = float(number(value))

    assert float(value) == actual or (math.isnan(value) and math.isnan(actual))


@given(
    st.lists(NAMES, min_size=1, max_size=3, unique=True),
    TEXT,
    st.lists(st.tuples(st.lists(TEXT, min_size=3, max_size=3), NUMBERS), max_size=3),
)
def test_prometheus_reads_back_names_help_labels_and_numbers(
    names: list[str], help: str, drawn: list[tuple[list[str], float]]
) -> None:
    labels = tuple(f"l{number}" for number in range(3))
    family = [Sample(tuple(values), value) for values, value in drawn]
    families = [Family(Metric(name, Kind.GAUGE, help, labels), tuple(family)) for name in names]

    found = {read.name: read for read in text_string_to_metric_families(text(*families))}

    assert (set(names) if family else set()) == set(found)
    for read in found.values():
        assert "gauge" == read.type
        assert [
            {label: value for label, value in zip(labels, sample.labels, strict=True) if value}
            for sample in family
        ] == [sample.labels for sample in read.samples]
        assert [pytest.approx(float(sample.value), nan_ok=True) for sample in family] == [
            sample.value for sample in read.samples
        ]
