"""The faults of a broker under test, as they are seen."""

from __future__ import annotations

import pytest

from support.shown import Shown, wanted_by
from trionet.dashboard.model._model import Model
from trionet.dashboard.model._rows import FaultedRow, FaultRow
from trionet.dashboard.ui._view import Act

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


def test_a_fault_is_injected_with_what_is_typed(model: Model) -> None:
    shown = Shown(model, "faults")

    shown.press("I")
    for words in ("delay 0.5", "Produce,Fetch", "", "app", ""):
        shown.type(words)

    [act] = shown.effects
    assert isinstance(act, Act)
    assert ("inject", ("delay 0.5", "Produce,Fetch", "", "app", "")) == (
        act.action.name,
        act.answers,
    )


def test_a_removal_is_confirmed(model: Model) -> None:
    shown = Shown(model, "faults")

    assert "Remove the fault 2, hold?" in shown.press("X")
    shown.press("y")

    [act] = shown.effects
    assert isinstance(act, Act)
    assert 2 == act.row.number
