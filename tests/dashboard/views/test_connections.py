"""A connection and its requests, as they are seen."""

from __future__ import annotations

import attrs
import pytest

from support.dashboard_model import busy_model
from support.shown import Shown, wanted_by
from trionet.dashboard.drawing import _palette as palette
from trionet.dashboard.drawing._cells import UNICODE
from trionet.dashboard.model._about import CLIENT_ID
from trionet.dashboard.model._model import Model
from trionet.dashboard.model._rows import ClosedRow, RequestRow
from trionet.dashboard.ui._screen import draw
from trionet.protocol.error_codes import NOT_LEADER_OR_FOLLOWER

#: A request that waited 300 ms for data.
FETCH = RequestRow(
    1, 1_700_000_000.0, "Fetch", 16, "app", 0, 95, 2048, (0.1, 0.2, 300.0, 0.0, 0.4, 0.5, 301.2)
)
ID = "127.0.0.1:9092-127.0.0.1:40000-0-0"


@pytest.fixture
def model() -> Model:
    model = busy_model()
    model.select_requests(ID)
    failed = attrs.evolve(FETCH, number=2, api="Produce", error_code=NOT_LEADER_OR_FOLLOWER)
    model.append_requests([failed, FETCH], 0, 61.0)
    return model


def test_enter_shows_the_requests_of_a_connection_as_they_finish(model: Model) -> None:
    shown = Shown(model, "connections", width=160)

    shown.press("enter")

    assert ("requests", ID) == wanted_by(shown)
    assert "librdkafka 2.6.0" in shown.text
    fetch = shown.line("Fetch v16")
    assert ["Fetch", "v16", "95", "B", "2.0", "KiB", "100", "µs", "200", "µs", "300", "ms"] == (
        fetch[1:13]
    )
    assert "NOT_LEADER" in " ".join(shown.line("Produce v16"))


def test_the_newest_is_followed_until_the_cursor_is_moved(model: Model) -> None:
    shown = Shown(model, "connections")
    shown.press("enter")
    later = attrs.evolve(FETCH, number=3, api="Heartbeat")
    model.append_requests([later], 0, 62.0)
    assert shown.text
    assert later == shown.ui.current.selected

    shown.press("j")
    before = shown.ui.current.selected
    model.append_requests([attrs.evolve(FETCH, number=4)], 0, 63.0)
    assert shown.text
    assert before == shown.ui.current.selected


def test_a_request_is_opened_with_its_phases(model: Model) -> None:
    shown = Shown(model, "connections")
    shown.press("enter", "j")

    text = shown.press("enter")

    assert "app  95 B in, 2.0 KiB out" in text
    assert ["remote", "300", "ms", "100", "%"] == shown.line("remote")[:5]


def test_the_details_are_a_key_away(model: Model) -> None:
    shown = Shown(model, "connections")
    shown.press("enter", "d")

    assert ["mute", "state", "MUTED"] == shown.line("mute state")


def test_that_it_was_closed_is_said_with_the_reason(model: Model) -> None:
    shown = Shown(model, "connections")
    shown.press("enter")
    closed = ClosedRow(1, ID, "L", 0, "p", "u", "IDLE", "idle too long", "", 1.0, 2.0, 3, 4, 5)
    model.connections.replace({}, 62.0)
    model.closed.replace({1: closed}, 62.0)

    assert "Closed: idle too long. The last known details:" in shown.text
    assert "Fetch v16" in shown.text


def test_requests_that_came_too_fast_are_counted(model: Model) -> None:
    shown = Shown(model, "connections")
    shown.press("enter")
    model.append_requests([attrs.evolve(FETCH, number=900)], 897, 62.0)

    assert "897 requests skipped" in shown.text


NONE_YET = "No request has finished since this view was opened."


def test_that_none_has_finished_yet_is_said_once_it_is_known(model: Model) -> None:
    model.select_requests(ID)
    shown = Shown(model, "connections")

    assert " Reading from 127.0.0.1:9092 ..." in shown.press("enter")
    assert NONE_YET not in shown.text

    model.append_requests([], 0, 61.0)
    assert NONE_YET in shown.text
    assert "Reading from" not in shown.text

    model.append_requests([FETCH], 0, 62.0)
    assert "Fetch v16" in shown.text
    assert NONE_YET not in shown.text


def test_nor_is_it_said_of_requests_that_could_not_be_read(model: Model) -> None:
    model.select_requests(ID)
    model.append_requests([], 0, 61.0)
    model.requests.mark_failed("requests could not be read: refused")
    shown = Shown(model, "connections")

    assert "requests could not be read: refused" in shown.press("enter")
    assert NONE_YET not in shown.text


def test_connections_of_dashboards_are_dim(model: Model) -> None:
    number, row = next(iter(model.connections.items()))
    model.connections.amend({number: attrs.evolve(row, client_id=f"{CLIENT_ID}-tail")})
    shown = Shown(model, "connections", width=80)
    assert shown.press("j")

    lines = draw(shown.ui, model, 80, 24, UNICODE).lines
    styles = {
        client: {segment.style for segment in line if segment.text.strip()}
        for line in lines
        for client in (f"{CLIENT_ID}-tail", "billing-2 ")
        if any(client in segment.text for segment in line)
    }

    assert palette.DIM in styles[f"{CLIENT_ID}-tail"]
    assert palette.DIM not in styles["billing-2 "]


def test_requests_of_another_connection_are_not_shown(model: Model) -> None:
    shown = Shown(model, "connections")
    shown.press("j", "enter")

    assert "Fetch v16" not in shown.text
    assert "Reading from" in shown.text
