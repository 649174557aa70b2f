"""The faults of a broker under test, as they are seen."""

from __future__ import annotations

import re

import pytest

from support.shown import Shown, wanted_by
from trionet.dashboard.model._model import Model
from trionet.dashboard.model._rows import FaultedRow, FaultRow
from trionet.dashboard.ui._view import Act
from trionet.dashboard.views._faults import FaultOrder

HIT = FaultedRow(
    1_700_000_000.0, "Produce", "app", "c-1", ("REQUEST_TIMED_OUT",), "retried after 105 ms: ok"
)


@pytest.fixture
def model() -> Model:
    model = Model()
    rows = {
        2: FaultRow(2, "Fetch", "hold", "armed", 0, None, ()),
        1: FaultRow(1, "Produce, topic t", "fail with X", "over", 1, 1, (HIT,)),
    }
    model.replace_rows("faults", rows, 2, 1.0)
    return model


def test_a_fault_is_a_line_with_the_last_reaction(model: Model) -> None:
    shown = Shown(model, "faults")

    assert ("faults", None) == wanted_by(shown)
    assert ["2", "armed", "hold", "Fetch", "0"] == shown.line("hold")
    assert ["Produce,", "topic", "t", "1", "1", "retried"] == shown.line("retried")[5:11]
    assert "retried after 105 ms: ok" in shown.text


def test_enter_shows_what_each_client_did(model: Model) -> None:
    shown = Shown(model, "faults")

    shown.press("j", "enter")

    assert "over  Produce, topic t  1 of 1 requests" in shown.text
    assert ["Produce", "app", "REQUEST_TIMED_OUT", "retried"] == shown.line("retried")[1:5]


@pytest.mark.parametrize(
    ("line", "words", "meaning"),
    [
        (
            "hold",
            {"fault": "hold"},
            "hold: the next request of any API, any client, any topic",
        ),
        (
            "delay 100ms Fetch",
            {"fault": "delay 0.1", "apis": "Fetch"},
            "delay 100ms: the next request of Fetch, any client, any topic",
        ),
        (
            "delay 0.5 Produce,Fetch 3 client=app",
            {"fault": "delay 0.5", "apis": "Produce,Fetch", "times": "3", "client_id": "app"},
            "delay 0.5: the next 3 requests of Produce, Fetch, client app, any topic",
        ),
        (
            "throttle 2s all topic=orders",
            {"fault": "throttle 2000", "times": "all", "topic": "orders"},
            "throttle 2s: all requests of any API, any client, topic orders",
        ),
        (
            "throttle 500 all 2",
            {"fault": "throttle 500", "apis": "all", "times": "2"},
            "throttle 500: the next 2 requests of any API, any client, any topic",
        ),
        ("full-disk", {"fault": "full-disk"}, "full-disk: any topic"),
        (
            "stop-reading client='my app'",
            {"fault": "stop-reading", "client_id": "my app"},
            "stop-reading: client my app",
        ),
    ],
)
def test_a_fault_is_one_line_and_what_it_leaves_out_is_stated(
    line: str, words: dict[str, str], meaning: str
) -> None:
    order = FaultOrder.parsed(line)

    assert (words, meaning) == (order.words, str(order))


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("", "expected FAULT [APIS] [COUNT] [client=ID] [topic=NAME]"),
        ("delay", "delay takes a time, such as delay 100ms"),
        ("delay soon Fetch", "delay takes a time, such as delay 100ms"),
        ("close Fetch Produce", "Produce: expected a number of requests, or all"),
        ("close apis=Fetch", "apis=Fetch: expected client=ID or topic=NAME"),
        ("close topic=", "topic=: expected client=ID or topic=NAME"),
        ("close client='x", "No closing quotation"),
        ("close Fetch 0", "0: expected 1 request or more, or all"),
        ("full-disk Produce", "full-disk takes nothing but topic="),
        ("full-disk 1", "full-disk takes nothing but topic="),
        ("stop-reading topic=orders", "stop-reading takes nothing but client="),
    ],
)
def test_what_is_no_fault_says_what_one_is(line: str, wrong: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(wrong)}$"):
        FaultOrder.parsed(line)


def test_the_form_says_what_a_line_means_while_it_is_typed(model: Model) -> None:
    shown = Shown(model, "faults")

    assert "an error, close, reset, delay 1s," in shown.press("I")
    assert "delay takes a time, such as delay 100ms" in shown.press(*"delay")
    text = shown.press(*" 100ms Fetch")
    assert "delay 100ms: the next request of Fetch, any client, any topic" in text
    assert "inject a fault, such as delay 100ms Fetch: delay 100ms Fetch" in text
    shown.press("enter")

    [act] = shown.effects
    assert isinstance(act, Act)
    assert ("inject", ("delay 100ms Fetch",)) == (act.action.name, act.answers)


@pytest.mark.parametrize("command", ["inject delay 0.5 Produce 3", 'inject "delay 0.5" Produce 3'])
def test_a_command_is_the_same_line(model: Model, command: str) -> None:
    shown = Shown(model, "faults")

    shown.press(":")
    shown.type(command)

    [act] = shown.effects
    assert isinstance(act, Act)
    [answer] = act.answers
    assert {"fault": "delay 0.5", "apis": "Produce", "times": "3"} == (
        FaultOrder.parsed(answer).words
    )


def test_a_removal_is_confirmed(model: Model) -> None:
    shown = Shown(model, "faults")

    assert "Remove the fault 2, hold?" in shown.press("X")
    shown.press("y")

    [act] = shown.effects
    assert isinstance(act, Act)
    assert 2 == act.row.number
