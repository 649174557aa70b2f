"""Groups, as they are seen."""

from __future__ import annotations

import pytest

from support.shown import Shown, wanted_by
from trionet.dashboard.model._model import Model
from trionet.dashboard.model._rows import GroupRow, LagRow, MemberRow
from trionet.dashboard.ui._view import Act

MEMBER = MemberRow(
    "m-1", None, "reader", "/10.0.0.7", (("orders", 0), ("orders", 2)), None, True, "syncing", 40.0
)


@pytest.fixture
def model() -> Model:
    model = Model()
    groups = [
        GroupRow(
            "billing",
            "classic",
            "Stable",
            "consumer",
            "range",
            1,
            12,
            1,
            7,
            3.0,
            (MEMBER,),
            (
                LagRow("orders", 0, 93, 5, 100, 7, "m-1"),
                LagRow("orders", 2, None, 0, 50, None, "m-1"),
            ),
        ),
        GroupRow("reports", "consumer", "Empty", "consumer"),
    ]
    model.update_groups({row.id: row for row in groups}, 1.0)
    return model


def test_a_group_is_a_line(model: Model) -> None:
    shown = Shown(model, "groups")

    assert [
        "billing",
        "Stable",
        "3.0",
        "s",
        "1",
        "7",
        "12",
        "classic",
        "consumer",
        "range",
        "1",
    ] == (shown.line("billing"))
    assert ["reports", "Empty", "consumer", "consumer"] == shown.line("reports")
    assert ("groups", None) == wanted_by(shown)


def test_enter_shows_how_far_it_is_and_v_who_is_in_it(model: Model) -> None:
    shown = Shown(model, "groups")

    shown.press("enter")
    assert ("group", "billing") == wanted_by(shown)
    assert ["orders", "0", "93", "100", "7", "m-1", "5"] == shown.line("93")
    assert ["orders", "2", "50", "m-1", "0"] == shown.line("50")
    assert "generation 12" in shown.text

    shown.press("v")
    assert ("group", "billing") == wanted_by(shown)
    assert ["reader", "/10.0.0.7", "2", "orders", "0,2", "syncing", "40", "s", "yes", "m-1"] == (
        shown.line("reader")
    )


def test_a_group_that_is_gone_is_said_so(model: Model) -> None:
    shown = Shown(model, "groups")
    shown.press("enter")
    model.update_groups({}, 2.0, all_of={"reports"})

    assert "the group no longer exists" in shown.text


def test_a_reset_is_asked_for_and_confirmed(model: Model) -> None:
    shown = Shown(model, "groups")
    shown.press("R")
    assert "use start, end, an offset" in shown.type("soon")
    shown.press("ctrl-u")
    shown.type("-10")
    assert "Reset billing to -10 in all its topics?" in shown.type("")
    shown.press("y")

    [act] = shown.effects
    assert isinstance(act, Act)
    assert ("reset", ("-10", "")) == (act.action.name, act.answers)
