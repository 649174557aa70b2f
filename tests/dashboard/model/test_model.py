"""The model and its lists, told by hand."""

from __future__ import annotations

from operator import attrgetter, itemgetter
from typing import Any

import pytest

from trionet.dashboard.model import _snapshot as readings
from trionet.dashboard.model._model import Model
from trionet.dashboard.model._rows import GroupRow, MemberRow, QuotaRow
from trionet.dashboard.model._section import Section
from trionet.dashboard.model._snapshot import BrokerSnapshot
from trionet.metrics._request_times import PHASES

#: The counts of channels.
CHANNELS = ("total", "examined", "muted", "staged", "with_staged")


def about(requests: int = 0, errors: int = 0, **others: Any) -> dict[str, Any]:
    """What ``/snapshot`` has beside lists and metrics."""
    processor = {
        "id": 0,
        "listener": "PLAINTEXT",
        "connections": 3,
        "in_flight": 2,
        "response_queue": 1,
        "request_queue_full": 0,
        "requests": requests,
        "responses": requests,
        "bytes_received": 10 * requests,
        "bytes_sent": 20 * requests,
    }
    return {
        "trionet": "1.0",
        "node_id": 7,
        "cluster_id": "abc",
        "uptime_seconds": 12.0,
        "listeners": ["PLAINTEXT://127.0.0.1:9092"],
        "queues": {"requests": 4, "requests_max": 500, "responses": {"0": 1}},
        "closed": {"PEER_CLOSED": requests},
        "totals": {
            "requests": requests,
            "responses": requests,
            "bytes_received": 10 * requests,
            "bytes_sent": 20 * requests,
            "connections_created": 3,
            "connections_closed": requests,
        },
        "processors": [processor],
        "channels": {**dict.fromkeys(CHANNELS, 3), "phases": {"idle": 2, "remote": 1}},
        "quotas": [],
        "apis": [
            {
                "name": "Fetch",
                "requests": requests,
                "bytes": 0,
                "errors": errors,
                "phases_ms": dict.fromkeys(PHASES, 0.0),
                "total_ms": [],
            }
        ],
        **others,
    }


def test_what_grows_is_reported_by_how_fast() -> None:
    model = Model()
    model.update_network(BrokerSnapshot(1000.0, about(100), {}), 5.0)
    model.update_network(BrokerSnapshot(1002.0, about(300, errors=3), {}), 7.0)

    figures = model.figures
    assert (100, 1000, 2000, 100, 0) == itemgetter(
        "requests", "bytes_in", "bytes_out", "connections_closed", "connections_created"
    )(figures)
    assert 1.5 == figures["errors"]
    assert (300, 100, 3) == attrgetter("requests", "rate", "errors")(model.apis["Fetch"])
    assert (100, 1000) == attrgetter("request_rate", "bytes_received_rate")(model.processors[0])
    assert (300, 100) == attrgetter("count", "rate")(model.close_reasons["PEER_CLOSED"])


def test_how_idle_the_loop_is_comes_of_the_seconds_that_it_waited() -> None:
    model = Model()
    model.update_network(
        BrokerSnapshot(1000.0, about(), {readings.LOOP_IDLE_SECONDS: {(): 90.0}}), 5.0
    )
    model.update_network(
        BrokerSnapshot(1002.0, about(), {readings.LOOP_IDLE_SECONDS: {(): 90.5}}), 7.0
    )

    assert 0.25 == model.figures["loop_idle"]


def test_histories_are_of_the_clock_of_who_looks() -> None:
    model = Model()
    for second in range(3):
        model.update_network(BrokerSnapshot(1000.0 + second, about(second), {}), 5.0 + second)

    assert [(5.0, 3), (6.0, 3), (7.0, 3)] == list(model.figures.history("connections"))
    assert [(6.0, 1), (7.0, 1)] == list(model.figures.history("requests"))


def test_what_stays_as_it_is_is_reported_as_such() -> None:
    model = Model()
    model.update_network(
        BrokerSnapshot(
            1.0,
            about(),
            {
                readings.LOOP_LAG: {("0.50",): 0.001, ("0.99",): 0.004, ("1",): 0.2},
                readings.PROCESSORS_IDLE: {(): 0.75},
                readings.BLOCKED: {("A",): 0.1, ("B",): 0.4},
                readings.FAILED_AUTHENTICATIONS: {("A", "0"): 2.0, ("A", "1"): 3.0},
            },
        ),
        1.0,
    )

    figures = model.figures
    assert (4, 500, 1, 2) == itemgetter(
        "request_queue", "request_queue_max", "response_queue", "in_flight"
    )(figures)
    assert (0.75, 0.004, 0.4, 5) == itemgetter(
        "processors_idle", "loop_lag_p99", "acceptor_blocked", "failed_authentications"
    )(figures)
    assert ("trionet 1.0", 7, "abc", 12.0) == attrgetter(
        "software", "node_id", "cluster_id", "uptime_seconds"
    )(model.about)


def test_a_metric_without_samples_is_zero_if_the_values_of_all_labels_are_combined() -> None:
    model = Model()

    model.update_network(
        BrokerSnapshot(
            1.0,
            about(),
            {
                readings.BLOCKED: {},
                readings.FAILED_AUTHENTICATIONS: {},
                readings.PROCESSORS_IDLE: {},
            },
        ),
        1.0,
    )

    assert (0.0, 0.0) == itemgetter("acceptor_blocked", "failed_authentications")(model.figures)
    assert None is model.figures.get("processors_idle")


#: The figures that are of each part of what a broker reports.
DEPENDENT = {
    "queues": {"request_queue", "request_queue_max", "response_queue"},
    "processors": {"connections", "in_flight"},
    "totals": {
        "requests",
        "bytes_in",
        "bytes_out",
        "connections_created",
        "connections_closed",
    },
    "apis": {"errors"},
    "channels": {"muted", "staged"},
    "closed": set[str](),
    "quotas": set[str](),
}


@pytest.mark.parametrize("wrong", [None, 7, [7], {"x": "y"}, "absent"], ids=str)
@pytest.mark.parametrize("part", DEPENDENT)
def test_what_a_broker_reports_in_another_form_leaves_the_rest_known(
    part: str, wrong: object
) -> None:
    model = Model()
    for second in range(2):
        told = {**about(second), part: wrong}
        if wrong == "absent":
            del told[part]
        model.update_network(BrokerSnapshot(second, told, {}), second)

    assert set().union(*DEPENDENT.values()) - DEPENDENT[part] == set(model.figures)
    assert (wrong != "absent") == (f": {part}" in " ".join(model.alarms.values()))
    model.update_network(BrokerSnapshot(2, about(2), {}), 2)
    assert {} == model.alarms


def test_a_broker_that_came_back_with_another_list_of_apis_may_be_lost() -> None:
    model = Model()
    model.update_network(BrokerSnapshot(10, {**about(10), "uptime_seconds": 100}, {}), 10)
    model.update_network(BrokerSnapshot(11, {**about(11), "uptime_seconds": 1, "apis": 7}, {}), 11)

    model.mark_network_failed("gone")

    assert [None] * len(model.apis.items()) == [row.rate for _, row in model.apis.items()]


def test_a_figure_that_is_not_reported_is_not_there() -> None:
    model = Model()

    assert None is model.figures.get("loop_idle")
    assert 0 == len(model.figures.history("loop_idle"))


def test_what_the_protocol_does_not_report_is_missing_and_says_why() -> None:
    model = Model()

    model.mark_network_missing("only a trionet broker tells")

    sections = (model.apis, model.connections, model.closed, model.processors, model.log)
    assert {"only a trionet broker tells"} == {section.missing for section in sections}
    assert None is model.topics.missing


CONNECTION = {
    "number": 3,
    "id": "127.0.0.1:9092-127.0.0.1:40000-0-3",
    "listener": "PLAINTEXT",
    "processor": 0,
    "principal": "User:ANONYMOUS",
    "software": "librdkafka",
    "software_version": "2.0",
    "cipher": None,
    "protocol": None,
    "age_seconds": 5.0,
    "idle_seconds": 1.0,
    "requests": 8,
    "bytes_received": 100,
    "bytes_sent": 200,
    "is_muted": True,
}


def test_a_row_of_an_older_broker_lacks_what_it_does_not_report() -> None:
    model = Model()

    model.replace_rows("connections", model.make_rows("connections", [CONNECTION]), 9, 1.0)

    [row] = model.connections.values()
    assert (3, "librdkafka", True, None, None) == attrgetter(
        "number", "software", "is_muted", "phase", "staged"
    )(row)
    assert (9, False) == (model.connections.total, model.connections.is_whole)


def test_a_row_of_a_newer_broker_is_read_as_far_as_it_is_known() -> None:
    model = Model()

    rows = model.make_rows("connections", [{**CONNECTION, "phase": "idle", "mood": "good"}])
    model.replace_rows("connections", rows, 1, 1.0)

    assert "idle" == model.connections[3].phase


def test_a_connection_has_rates_since_the_look_before() -> None:
    model = Model()
    for age, requests, received in ((10.0, 100, 1_000), (12.0, 150, 1_600)):
        row = {**CONNECTION, "age_seconds": age, "requests": requests}
        row |= {"bytes_received": received, "bytes_sent": 0}
        rows = model.make_rows("connections", [row])
        model.replace_rows("connections", rows, 1, age)

    found = model.connections[3]
    assert (25.0, 300.0) == (found.request_rate, found.byte_rate)
    rows = model.make_rows("connections", [{**CONNECTION, "id": "another", "age_seconds": 13.0}])
    assert None is rows[3].request_rate


INSIDE = {
    "number": 0,
    "id": "g",
    "state": "Stable",
    "state_seconds": 4.0,
    "generation": 12,
    "protocol_type": "consumer",
    "protocol": "range",
    "pending": 0,
    "members": [
        {
            "id": "m1",
            "instance_id": None,
            "client_id": "c",
            "client_host": "/127.0.0.1",
            "is_leader": True,
            "phase": "stable",
            "session_seconds": 45.0,
            "expires_seconds": 40.0,
        }
    ],
}


@pytest.mark.parametrize("inside_first", [True, False])
def test_a_group_is_what_two_sources_report_of_it(inside_first: bool) -> None:
    model = Model()
    member = MemberRow("m1", None, "c", "/127.0.0.1", (("t", 0),))
    row = GroupRow("g", "classic", "Stable", "consumer", "range", 1, None, 1, 7, detail=(member,))

    def tell_inside() -> None:
        model.update_group_internals([INSIDE], 1.0)

    if inside_first:
        tell_inside()
    model.update_groups({"g": row}, 1.0, all_of={"g"})
    if not inside_first:
        tell_inside()

    group = model.groups["g"]
    assert (12, 7, 4.0, 1) == (group.generation, group.lag, group.state_seconds, group.members)
    assert group.detail is not None
    [found] = group.detail
    assert ((("t", 0),), True, "stable", 40.0) == attrgetter(
        "assignment", "is_leader", "phase", "expires_seconds"
    )(found)


def test_a_group_that_only_the_broker_reports_is_there() -> None:
    model = Model()

    model.update_group_internals([INSIDE], 1.0)

    assert ("Stable", 12, None) == attrgetter("state", "generation", "lag")(model.groups["g"])


def test_a_group_that_is_gone_is_forgotten() -> None:
    model = Model()
    rows = {id: GroupRow(id, "classic", "Empty", "consumer") for id in ("a", "b")}
    model.update_groups(rows, 1.0, all_of={"a", "b"})

    model.update_groups({"a": rows["a"]}, 2.0, all_of={"a"})

    assert ["a"] == list(model.groups)


def test_a_group_that_its_broker_has_forgotten_is_what_the_cluster_reports() -> None:
    model = Model()
    model.update_group_internals([INSIDE, {**INSIDE, "id": "h"}], 1.0)
    model.update_groups({"h": GroupRow("h", "classic", "Empty", "consumer")}, 1.0, all_of={"h"})

    model.retain_group_internals(set(), 2.0)

    assert ["h"] == list(model.groups)


def test_alarms_are_reported_until_they_are_over() -> None:
    model = Model()

    model.set_alarm("metrics", "cannot be read")
    assert {"metrics": "cannot be read"} == model.alarms
    model.set_alarm("metrics", None)

    assert {} == model.alarms


def test_a_broker_that_was_started_again_begins_anew() -> None:
    """Its counts may have outgrown the old ones, and its loop's clock is another one."""
    model = Model()
    slow = {"phases_ms": dict.fromkeys(PHASES, 5000.0), "total_ms": [(1000.0, 100)]}
    quick = {"phases_ms": dict.fromkeys(PHASES, 1.0), "total_ms": [(1.0, 150)]}
    for at, count, uptime, times in (
        (1000.0, 100, 500.0, slow),
        (1001.0, 100, 501.0, slow),
        (900_000.0, 150, 700.0, quick),
    ):
        told = {**about()["apis"][0], **times, "requests": count}
        model.update_network(
            BrokerSnapshot(at, about(count, uptime_seconds=uptime, apis=[told]), {}), at
        )

    assert "requests" not in model.figures
    assert "requests" in model.figures.reported()
    assert model.apis["Fetch"].rate is None
    assert () == model.apis["Fetch"].phases_ms
    assert model.processors[0].request_rate is None


def test_so_does_one_that_was_up_for_longer_before() -> None:
    model = Model()
    model.update_network(BrokerSnapshot(1000.0, about(100, uptime_seconds=500.0), {}), 5.0)
    model.update_network(BrokerSnapshot(1001.0, about(150, uptime_seconds=3.0), {}), 6.0)

    assert "requests" not in model.figures


def test_of_quotas_of_a_broker_that_is_gone_the_limits_stay() -> None:
    model = Model()
    of_broker = {"entity": "broker", "key": "max.connections", "limit": 9.0}
    measured = {"value": 7.0, "throttle_ms": 5.0, "refused": 3}
    model.update_network(BrokerSnapshot(1.0, about(quotas=[{**of_broker, **measured}]), {}), 5.0)
    of_client = QuotaRow("user=alice", "producer_byte_rate", 1024.0, 512.0)
    clients = {(of_client.entity, of_client.key): of_client}
    model.update_client_quotas(clients, None, 6.0)

    model.mark_network_failed("gone")

    expected = [QuotaRow("broker", "max.connections", 9.0), of_client]
    assert expected == list(model.quotas.values())
    assert 6.0 == model.quotas.updated_at
    model.update_client_quotas(clients, None, 7.0)
    assert expected == list(model.quotas.values())


def test_rows_are_replaced_and_each_change_is_a_version() -> None:
    section: Section[str, int] = Section()
    before = section.version

    section.replace({"a": 1, "b": 2}, 5.0)

    assert {"a": 1, "b": 2} == dict(section)
    assert (2, 5.0, True) == (section.total, section.updated_at, section.is_whole)
    assert section.version > before


def test_a_list_that_is_being_read_is_not_whole() -> None:
    section: Section[str, int] = Section()

    section.replace({"a": 1}, 5.0, total=3)
    found = [section.is_whole]
    section.update({"b": 2, "c": 3}, 6.0)
    found.append(section.is_whole)

    assert [False, True] == found
    assert ["a", "b", "c"] == list(section)


def test_what_is_gone_is_forgotten() -> None:
    section: Section[str, int] = Section()
    section.replace({"a": 1, "b": 2, "c": 3}, 5.0)

    section.retain({"a", "c"}, 6.0)

    assert {"a": 1, "c": 3} == dict(section)
    assert 2 == section.total


def test_a_list_that_cannot_be_had_says_why_and_has_no_rows() -> None:
    section: Section[str, int] = Section()
    section.replace({"a": 1}, 5.0)

    section.mark_missing("the broker does not tell")

    assert ("the broker does not tell", {}, 0) == (section.missing, dict(section), section.total)


def test_a_list_that_could_not_be_read_once_keeps_its_rows() -> None:
    section: Section[str, int] = Section()
    section.replace({"a": 1}, 5.0)

    section.mark_failed("no answer")
    assert ("no answer", {"a": 1}) == (section.failure, dict(section))
    section.replace({"a": 2}, 6.0)

    assert (None, None) == (section.failure, section.missing)
