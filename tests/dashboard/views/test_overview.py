"""What the overview shows of channels, and of brokers that report nothing of them."""

from __future__ import annotations

import attrs
import pytest

from support.dashboard_model import busy_model
from support.shown import Shown
from trionet.dashboard.model._about import CLIENT_ID
from trionet.dashboard.model._model import Model
from trionet.dashboard.model._rows import ChannelCounts, GroupRow, TopicRow
from trionet.dashboard.sources._local_source import NO_METRICS


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


SIZES = ((60, 15), (80, 24), (100, 30), (120, 40), (200, 60))


def kafka_model(topics: int = 3, groups: int = 3) -> Model:
    """What the Kafka protocol reports; the rates and lags grow with the numbers in the names."""
    model = Model()
    model.mark_network_missing(NO_METRICS)
    rows = [
        TopicRow(f"t{number}", "AAAA", False, 2, 1, 0, 0, 2048, 1_000, 10.0 * number)
        for number in range(topics)
    ]
    internal = TopicRow("__consumer_offsets", "BBBB", True, 50, 1, 0, 0, 0, 0, 1e6)
    model.topics.replace({row.name: row for row in (*rows, internal)}, 1.0)
    members = [
        GroupRow(f"g{number}", "classic", "Stable", "consumer", members=1, lag=number or None)
        for number in range(groups)
    ]
    model.update_groups({row.id: row for row in members}, 1.0, all_of={row.id for row in members})
    for name, value in (("topics", topics), ("records", 30.0), ("lag", 3.0), ("brokers", 1)):
        model.figures.put(name, 1.0, value)
    return model


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_of_other_brokers_the_overview_has_records_lag_topics_and_groups(
    size: tuple[int, int],
) -> None:
    shown = Shown(kafka_model(), "overview", *size)

    assert "30/s" in shown.text
    assert ["t2", "2"] == shown.line(" t2 ")[:2]
    assert "brokers 1" in shown.text
    for panel in ("APIs ─", "WHERE THE TIME GOES", "Loop", "Busiest channels", "Connections"):
        assert panel not in shown.text
    text = shown.press(*["j"] * 20)
    assert ["g2", "Stable", "1", "2"] == shown.line(" g2 ")[:4]
    assert " ".join(NO_METRICS.split()) in " ".join(text.split())


def test_of_many_topics_and_groups_the_first_are_shown_as_there_is_room() -> None:
    lines = Shown(kafka_model(100, 200), "overview", 120, 40).text.splitlines()

    [topics] = [number for number, line in enumerate(lines) if "Busiest topics" in line]
    [groups] = [number for number, line in enumerate(lines) if "Groups with the most" in line]
    [end] = [number for number, line in enumerate(lines) if "not available over" in line]
    assert f"Busiest topics, {groups - topics - 2} of 100" in lines[topics]
    assert f"lag, {end - 1 - groups - 2} of 200" in lines[groups]
    assert ["t99", "t98"] == [line.split()[0] for line in lines[topics + 2 : topics + 4]]
    assert ["g199", "g198"] == [line.split()[0] for line in lines[groups + 2 : groups + 4]]
    assert 38 == end + 1  # all of the screen above the hints


def test_few_groups_leave_their_room_to_topics() -> None:
    text = Shown(kafka_model(100, 1), "overview", 120, 40).text

    assert "Groups with the most lag ─" in text
    assert 15 < sum(line.startswith(" t") for line in text.splitlines())


def test_an_empty_cluster_says_what_makes_topics_and_groups() -> None:
    text = " ".join(Shown(kafka_model(0, 0), "overview", 100, 30).text.split())

    assert "trionet topics create TOPIC" in text
    assert "trionet consume TOPIC -g GROUP" in text
