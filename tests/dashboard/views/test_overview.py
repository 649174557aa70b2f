"""What the overview shows of channels."""

from __future__ import annotations

import attrs

from support.dashboard_model import busy_model
from support.shown import Shown
from trionet.dashboard.model._about import CLIENT_ID
from trionet.dashboard.model._model import Model
from trionet.dashboard.model._rows import ChannelCounts


def test_what_mutes_channels_is_counted_with_what_is_staged() -> None:
    model = busy_model()
    phases = {"idle": 5, "throttled": 1, "remote": 3}
    model.channels = ChannelCounts(9, 9, 4, 6, 2, phases)

    text = Shown(model, "overview", height=40).text

    assert "remote 3   throttled 1   staged in 2 channels" in text
    assert "muted channels" in text
    assert "staged receives" in text


def test_of_thousands_of_channels_some_are_examined_and_it_is_said_so() -> None:
    model = busy_model()
    model.channels = ChannelCounts(20_000, 1_000, 0, 0, 0, {"idle": 1_000})

    assert "all idle   of the first 1,000" in Shown(model, "overview", height=40).text


def test_the_busiest_channels_are_those_with_the_most_requests_a_second() -> None:
    lines = Shown(busy_model(), "overview", height=40).text.splitlines()

    [begin] = [n for n, line in enumerate(lines) if "Busiest channels" in line]
    clients = [line.split()[1] for line in lines[begin + 2 : begin + 7]]
    assert ["billing-6", "billing-13", "billing-20", "billing-27", "billing-5"] == clients


def test_dashboards_are_not_among_the_busiest_channels_but_summed_up() -> None:
    model = busy_model()
    theirs = ("billing-6", "billing-13")
    rows = {
        number: attrs.evolve(row, client_id=CLIENT_ID if row.client_id in theirs else "app")
        for number, row in model.connections.items()
    }
    model.replace_rows("connections", rows, len(rows), 61.0)

    lines = Shown(model, "overview", height=40).text.splitlines()

    [begin] = [n for n, line in enumerate(lines) if "Busiest channels" in line]
    assert ["app"] * 5 == [line.split()[1] for line in lines[begin + 2 : begin + 7]]
    assert " 2 channels of dashboards: 150 req/s" == lines[begin + 7].rstrip()


def test_of_a_broker_with_nothing_else_to_do_only_dashboards_are_reported() -> None:
    model = busy_model()
    busiest = attrs.evolve(model.busiest[0], client_id=CLIENT_ID)
    model.replace_rows("connections", {busiest.number: busiest}, 1, 61.0)

    lines = Shown(model, "overview", height=40).text.splitlines()

    [begin] = [n for n, line in enumerate(lines) if "Busiest channels" in line]
    assert " 1 channel of dashboards: 75 req/s" == lines[begin + 1].rstrip()


def test_nothing_of_it_is_there_of_a_broker_that_does_not_report_it() -> None:
    model = Model()
    model.figures.put("topics", 1.0, 3)

    text = Shown(model, "overview").text

    assert "Muted" not in text
    assert "Busiest" not in text
