"""Views without a module of tests, as they are seen."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import pytest

from support.dashboard_model import busy_model, full_model
from support.shown import Shown, wanted_by
from trionet.client.consumer import ConsumerRecord
from trionet.dashboard.drawing._cells import ASCII, FINE, UNICODE, Frame, Glyphs, Pen
from trionet.dashboard.drawing._export import as_text
from trionet.dashboard.drawing._table import Column
from trionet.dashboard.model._figures import History
from trionet.dashboard.model._model import Model
from trionet.dashboard.model._rows import (
    BrokerRow,
    ClosedRow,
    CloseReasonRow,
    CompactionRow,
    ConfigRow,
    FaultedRow,
    FetchSessionRow,
    GroupRow,
    LogRow,
    PartitionRow,
    QuotaRow,
    RequestRow,
    TaskRow,
    TopicRow,
)
from trionet.dashboard.model._tail import TailRow
from trionet.dashboard.ui._view import View
from trionet.dashboard.views import all_views
from trionet.dashboard.views._apis import STEP_MS, heat_lines, histogram
from trionet.dashboard.views._faults import REQUEST_COLUMNS as FAULTED_COLUMNS
from trionet.dashboard.views._log import LOG_COLUMNS, LogLineView
from trionet.dashboard.views._requests import REQUEST_COLUMNS, RequestView
from trionet.dashboard.views._tail import TAIL_COLUMNS, RecordView
from trionet.dashboard.views._topics import COMPACTION_COLUMNS
from trionet.metrics._rates import upper_of


def filled() -> Model:
    """A model that knows something of everything, all of it of the same name."""
    name = "orders"
    model = Model()
    model.topics.replace({name: TopicRow(name, "AAAA", False, 1, 1, 0, 0)}, 1.0)
    partition = PartitionRow(name, 0, 1, 0, (1,), (1,), ())
    model.partitions.replace({(name, 0): partition}, 1.0)
    model.update_groups({name: GroupRow(name, "classic", "Stable", name, name, 1, 2, 1, 3)}, 1.0)
    quotas = {(name, name): QuotaRow(name, name, 10.0, 9.0, 5.0, 3)}
    model.update_client_quotas(quotas, None, 1.0)
    model.close_reasons.replace({"IDLE": CloseReasonRow("IDLE", 7, 0.5)}, 1.0)
    closed = ClosedRow(
        1, name, name, 0, "10.0.0.7:99", name, "IDLE", "why", name, 4.0, 2.0, 5, 6, 7
    )
    model.closed.replace({1: closed}, 1.0)
    model.brokers.replace({1: BrokerRow(1, name, 9092, name, True, 3, 1024)}, 1.0)
    model.fetch_sessions.replace({0: FetchSessionRow(0, 77, 12, 3, True, 1.5)}, 1.0)
    window = "2026-11-22T11:45:00Z"
    _put(model, {"kind": "windows", "window": window}, {"requests": 6000, "errors": 2})
    series = {"kind": "requests", "window": window, "api": "Fetch", "client_id": name}
    _put(model, {**series, "listener": name}, {"requests": 500, "total_p99_us": 1500})
    talker = {"kind": "talkers", "window": window, "measure": "bytes", "rank": 1}
    _put(model, talker, {"client_id": name, "principal": name, "share": 0.25, "bytes": 2048})
    unusual = {"measure": "requests_per_s", "value": 9.0, "expected": 1.0, "score": 8.5}
    _put(model, {**series, "kind": "anomalies", "listener": name}, unusual)
    times = {"start": window, "end": "2026-11-22T11:47:00Z", "worst": window}
    incident: dict[str, object] = {
        "incident": "2026-11-22T11:45Z",
        "state": "open",
        "client_id": name,
        **times,
    }
    incident |= {"measure": "error_share", "value": 0.5, "expected": 0.0, "anomalies": 3}
    key: dict[str, object] = {
        "kind": "incidents",
        "window": window,
        "incident": "2026-11-22T11:45Z",
    }
    _put(model, key, incident)
    model.pipeline.show(1.0)
    return model


def _put(model: Model, key: dict[str, object], value: dict[str, object]) -> None:
    model.pipeline.put(json.dumps(key).encode(), json.dumps(value).encode())


def test_a_quota_is_beside_what_is_measured() -> None:
    shown = Shown(filled(), "quotas")

    words = shown.line("orders")
    assert ["orders", "orders", "10", "9"] == words[:4]
    assert ["5.0", "ms", "3"] == words[-3:]


@pytest.mark.parametrize(
    ("key", "limit", "shown"),
    [
        ("producer_byte_rate", 1_048_576.0, ["1.0", "MiB/s"]),
        ("request_percentage", 50.0, ["50", "%"]),
        ("connection_creation_rate", 2.5, ["2.5"]),
        ("max.connections", 200.0, ["200"]),
    ],
)
def test_a_limit_has_the_unit_of_its_quota(key: str, limit: float, shown: list[str]) -> None:
    model = Model()
    model.update_client_quotas({("user=alice", key): QuotaRow("user=alice", key, limit)}, None, 1.0)

    assert ["user=alice", key, *shown] == Shown(model, "quotas").line("user=alice")


@pytest.mark.parametrize("view", [view.name for view in all_views()])
def test_details_have_units_and_no_names_of_attributes(view: str) -> None:
    shown = Shown(full_model("orders"), view, 200, 60)
    shown.ui.shows_details = True
    beside = "\n".join(line.partition("│")[2] for line in shown.text.splitlines()[3:])

    assert not re.search(r"_|\b(seconds|us|ms|per s)  ", beside.replace("_orders_", ""))
    assert not re.search(r"bytes\S*( rate| received| sent| before| after)* +[\d,.]+$", beside)


def test_why_there_are_no_quotas_of_clients_is_said_beside_those_of_connections() -> None:
    model = filled()
    model.update_client_quotas(None, "this broker has none", 2.0)

    assert "this broker has none" in Shown(model, "quotas").text


def test_close_reasons_are_counted_above_the_last_connections() -> None:
    shown = Shown(filled(), "closes")

    assert "IDLE" in shown.text
    assert "0.5/s" in shown.text
    assert ["2.0", "s", "10.0.0.7:99", "IDLE"] == shown.line("10.0.0.7:99")[:4]
    assert ("closed", None) == wanted_by(shown)


def test_a_broker_leads_to_its_settings() -> None:
    model = filled()
    shown = Shown(model, "brokers")
    assert ["1", "orders", "9092", "orders", "yes", "3", "1.0", "KiB"] == shown.line("9092")

    shown.press("enter")
    assert ("configs", ("broker", "1")) == wanted_by(shown)
    model.configs_of = ("broker", "1")
    rows = [
        ConfigRow("log.dirs", "/data", "static broker config", False, True, False),
        ConfigRow("a.password", None, "static broker config", False, True, True),
    ]
    model.configs.replace({row.name: row for row in rows}, 1.0)
    assert ["log.dirs", "/data", "static", "broker", "config", "yes"] == shown.line("log.dirs")
    assert "(secret)" in shown.text


def test_that_settings_could_not_be_read_is_said_of_these_alone() -> None:
    model = filled()
    shown = Shown(model, "brokers")
    shown.press("enter")

    model.configs_of = ("broker", "2")
    model.configs.mark_failed("broker 2 does not answer")
    assert "does not answer" not in shown.text
    assert "Waiting for" in shown.text
    model.configs_of = ("broker", "1")
    assert "does not answer" in shown.text


def test_a_fetch_session_is_a_line() -> None:
    shown = Shown(filled(), "sessions")

    assert ["77", "12", "3", "1.5", "s", "id"] == shown.line("77")


def test_the_pipelines_minutes_lead_to_their_series_talkers_and_incidents() -> None:
    shown = Shown(filled(), "pipeline")
    assert ["11:45", "6,000", "2"] == shown.line("11:45")[:3]
    assert "1 incident, 1 not over" in shown.text

    shown.press("enter")
    assert ["Fetch", "orders"] == shown.line("Fetch")[:2]
    assert "1.5 ms" in shown.text

    shown.press("esc", "o")
    assert ["11:45", "bytes", "1", "orders"] == shown.line("bytes")[:4]
    assert "25 %" in shown.text

    shown.press("esc", "i")
    assert ["11:45", "11:47", "open", "error_share", "orders"] == shown.line("error_share")[:5]
    assert "0.50" in shown.text

    shown.press("esc", "a")
    assert ["11:45", "8.5", "Fetch", "orders", "requests_per_s"] == shown.line("8.5")[:5]


def heat(*spreads: dict[int, int] | None, width: int = 22) -> list[str]:
    pen, history = Pen(width, 10, UNICODE), History()
    for number in range(len(spreads)):
        history.add(2.0 * number, 1.0)
    return as_text(Frame(width, list(heat_lines(spreads, history, pen)))).splitlines()


def test_latencies_are_warmer_where_more_requests_were_look_by_look() -> None:
    lines = heat({0: 10}, {0: 9, 2: 1}, None, {}, {2: 5, 3: 5})

    assert [
        "   8.0 ms          ▒",
        "   4.0 ms       ░  ▒",
        "   2.0 ms",
        "   1.0 ms      ██",
        "          last 8.0 s",
    ] == [line.rstrip() for line in lines]


def test_the_newest_looks_are_those_that_there_is_room_for() -> None:
    spreads = [{0: 1}] * 50 + [{1: 1}] * 4

    assert ["   2.0 ms       ████", "   1.0 ms ██████", "           last 18 s"] == [
        line.rstrip() for line in heat(*spreads, width=22)
    ]


@pytest.mark.parametrize("glyphs", [UNICODE, FINE], ids=["blocks", "dots"])
@pytest.mark.parametrize("first", [0, 3, 20, 60])
def test_a_distribution_without_gaps_is_drawn_without_gaps(first: int, glyphs: Glyphs) -> None:
    """Of the shortest times a bucket is as wide as many columns."""
    buckets = [(upper_of(bucket) * STEP_MS, 5) for bucket in range(first, first + 12)]

    *_, foot, _axis = as_text(Frame(110, list(histogram(buckets, Pen(110, 20, glyphs))))).split(
        "\n"
    )[:-1]

    assert " " not in foot.strip()


def test_a_gap_in_a_distribution_is_one() -> None:
    buckets = [(upper_of(bucket) * STEP_MS, 5) for bucket in (40, 41, 50, 51)]

    lines = as_text(Frame(110, list(histogram(buckets, Pen(110, 20, UNICODE))))).split("\n")

    assert 2 == len(lines[-3].split())
    assert ["114 µs", "227 µs", "454 µs"] == re.split(r"\s{2,}", lines[-2].strip())


def test_without_requests_there_is_a_sentence() -> None:
    assert ["no requests"] == [line.strip() for line in heat(None, {})]


def test_an_api_is_shown_with_its_phases_its_latencies_and_how_they_changed() -> None:
    shown = Shown(busy_model(), "apis", 120, 60)
    text = shown.press("enter")

    assert "── Phases, mean of the last 10 seconds ──" in text
    assert "── Requests by total time, last 10 seconds ──" in text
    assert "── Share of requests by total time, read by read ──" in text
    assert "░" in text.partition("read by read")[2]
    assert 2 == len(re.findall(r" 5\d s ago .* now$", text, re.MULTILINE))
    assert Shown(busy_model(), "apis", 120, 60, ASCII).press("enter").isascii()


def test_tasks_are_drawn_as_a_tree_with_their_shares() -> None:
    model = Model()
    rows = {
        number: TaskRow(
            number, parent, 0, name, 1, 1, "Loop.run (m:7)", "sleep", 1.0, 9, 2.0, share, 4.0
        )
        for number, parent, name, share in (
            (0, None, "root", 0.0),
            (1, 0, "main", 0.5),
            (2, 1, "first", 0.25),
            (3, 1, "last", None),
            (4, 0, "next", None),
        )
    }
    model.replace_rows("tasks", rows, 5, 1.0)
    shown = Shown(model, "trio")

    names = [line[:20].rstrip() for line in shown.text.splitlines() if "Loop.run" in line]
    assert [" root", " ├ main", " │ ├ first", " │ └ last", " └ next"] == names
    assert ["50", "%"] == shown.line("main")[2:4]
    assert "sleep" in shown.line("first")


#: A time in microseconds where one in milliseconds is expected: the year 55840.
FAR = 1_700_000_000_000_000
_RECORD = TailRow.of(ConsumerRecord("t", 0, 7, FAR, None, b"v", [], 0, 0), 0)
_LOG = LogRow(1, FAR, "INFO", "trionet", "text")
_REQUEST = RequestRow(1, FAR, "Fetch", 17, None, 0, 1, 1, (0.0,) * 8)
_FAULTED = FaultedRow(FAR, "Fetch", None, "c", (), "waits")
_COMPACTED = PartitionRow(
    "t", 0, 1, 0, (1,), (1,), (), 0, 40, 1024, 0.0, CompactionRow(0.25, FAR, 4096, 1024, None)
)


@pytest.mark.parametrize(
    ("columns", "name", "row"),
    [
        (TAIL_COLUMNS, "timestamp", _RECORD),
        (LOG_COLUMNS, "time", _LOG),
        (REQUEST_COLUMNS, "time", _REQUEST),
        (FAULTED_COLUMNS, "time", _FAULTED),
        (COMPACTION_COLUMNS, "cleaned_ms", _COMPACTED),
    ],
    ids=["tail", "log", "requests", "faults", "topics"],
)
def test_a_time_beyond_the_calendar_is_shown_as_its_number(
    columns: Sequence[Column[object]], name: str, row: object
) -> None:
    [column] = [each for each in columns if each.name == name]

    assert str(FAR) == column.shown(row)


@pytest.mark.parametrize("view", [RecordView(_RECORD), LogLineView(_LOG), RequestView(_REQUEST)])
def test_a_record_with_a_time_beyond_the_calendar_has_a_view(view: View) -> None:
    lines = list(view.lines(Model(), Pen(80, 10, UNICODE)))

    assert str(FAR) in as_text(Frame(80, lines))
