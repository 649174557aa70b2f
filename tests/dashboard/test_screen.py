from __future__ import annotations

import re
import time
from collections.abc import Iterator

import attrs
import pytest
from rich.cells import cell_len

from support import frames
from support.dashboard_model import HOSTILE_NAMES, busy_model, full_model
from trionet.dashboard.cells import ASCII, UNICODE, Glyphs
from trionet.dashboard.export import as_text
from trionet.dashboard.frame import Frame
from trionet.dashboard.keys import Key
from trionet.dashboard.model import Model
from trionet.dashboard.screen import draw
from trionet.dashboard.ui import Ui
from trionet.dashboard.view import View
from trionet.dashboard.views import VIEWS, all_views


def ui(*keys: str, model: Model | None = None) -> Ui:
    found = Ui(all_views(), "overview")
    for key in keys:
        found.press(Key(key), model or Model())
    return found


def shown(ui: Ui, model: Model, size: tuple[int, int] = (120, 40), stale: float = 0.0) -> str:
    return as_text(draw(ui, model, *size, UNICODE, stale))


@pytest.fixture(autouse=True)
def _one_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Times of the log are those of the machine's zone."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("size", frames.SIZES, ids=str)
@pytest.mark.parametrize("view", frames.VIEWS)
def test_frames_look_as_they_did(view: str, size: tuple[int, int]) -> None:
    """Look at the new ones; if they are well, `python -m support.frames` in tests keeps them."""
    assert frames.path(view, *size).read_text("utf-8") == frames.frame(view, *size)


@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=lambda name: ascii(name[:12]))
def test_no_name_disturbs_any_view(name: str) -> None:
    assert_harmless(full_model(name), UNICODE)


def test_nor_without_unicode() -> None:
    assert_harmless(full_model("".join(HOSTILE_NAMES)), ASCII)


def assert_harmless(model: Model, glyphs: Glyphs) -> None:
    for frame in every_frame(model, glyphs):
        for line in frame.lines:
            text = "".join(segment.text for segment in line)
            assert frame.width == cell_len(text)
            assert text.isprintable()
            assert text.isascii() or not glyphs.is_ascii


def every_frame(model: Model, glyphs: Glyphs) -> Iterator[Frame]:
    """Each view, what it opens, its help and its questions, small and large."""
    for view in VIEWS:
        found = Ui(all_views(), view.name)
        yield draw(found, model, 60, 15, glyphs)
        for key in ("?", "esc", "enter", "enter", "esc", "esc"):
            found.press(Key(key), model)
            yield draw(found, model, 120, 40, glyphs)
        for action in found.place.view.actions:
            found.press(Key(action.key), model)
            for _ in range(len(action.fields) + 1):
                yield draw(found, model, 60, 15, glyphs)
                found.press(Key("7"), model)
                found.press(Key("enter"), model)
            for _ in range(2):
                found.press(Key("esc"), model)


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_every_view_has_a_frame_of_nothing(view: type[View]) -> None:
    found = Ui(all_views(), view.name)

    text = shown(found, Model())

    assert found.place.view.title in text


def test_names_keys_and_helps_of_views_are_their_own() -> None:
    views = all_views()

    assert len(views) == len({view.name for view in views})
    assert len(views) == len({view.key for view in views})
    assert all(len(view.key) == 1 for view in views)
    for view in views:
        assert view.help
        keys = [action.key for action in view.actions]
        assert len(keys) == len(set(keys))
        assert all(key.isupper() for key in keys)


def test_what_is_too_small_says_what_it_needs() -> None:
    text = shown(ui(), busy_model(), (59, 15))

    assert text.startswith("This screen has 59 x 15 cells.\nThe dashboard needs 60 x 15.\n")
    assert "This" == shown(ui(), busy_model(), (4, 1)).strip()


def test_the_header_tells_of_pauses_and_of_missing_news() -> None:
    model = busy_model()

    assert shown(ui(), model).split("\n")[0].endswith(" live")
    assert shown(ui(), model, stale=2.9).split("\n")[0].endswith(" live")
    assert shown(ui(), model, stale=75).split("\n")[0].endswith(" ! no news for 1m 15s")
    assert shown(ui("p"), model, stale=75).split("\n")[0].endswith(" PAUSED: p goes on")


def test_alarms_are_told_in_every_view() -> None:
    model = busy_model()
    model.tell("metrics", "http://127.0.0.1:9404 could not be read: refused")

    for view in all_views():
        assert " ! http://127.0.0.1:9404 could not" in shown(Ui(all_views(), view.name), model)


def test_a_list_that_is_missing_says_why() -> None:
    model = Model()
    model.refuse_network("the Kafka protocol does not tell this")

    for key in "23":
        assert " the Kafka protocol does not tell this" in shown(ui(key), model)


def test_of_rows_that_are_not_here_the_number_is_told() -> None:
    model = busy_model()
    model.put_rows("connections", {}, 812, 61.0)

    assert " Connections  0 of 812" in shown(ui("2"), model)


def test_a_filter_that_finds_nothing_says_so() -> None:
    model = busy_model()
    found = ui("2")
    found.place.filter = "nobody"

    text = shown(found, model)

    assert " Connections  0 of 30  filter nobody" in text
    assert "Nothing here has 'nobody'." in text


def test_where_there_is_no_room_tabs_are_keys() -> None:
    line = shown(ui("2"), busy_model(), (60, 15)).split("\n")[1]

    assert line.startswith(" 1  2 connections  3  4 ")


def test_a_long_command_is_typed_with_its_end_in_sight() -> None:
    found = ui(":", *"sort " + "x" * 100)

    foot = shown(found, busy_model(), (60, 15)).split("\n")[14]

    assert re.fullmatch(r":x+", foot)


def test_the_chosen_row_stays_in_sight() -> None:
    model = busy_model()
    found = ui("2")
    for key in ["j"] * 25:
        draw(found, model, 80, 24, UNICODE)
        found.press(Key(key), model)
    frame = draw(found, model, 80, 24, UNICODE)

    rows = [line for line in frame.lines if line[0].style and line[0].style.reverse]
    assert ["127.0.0.1:40025"] == [line[0].text.split()[0] for line in rows[-1:]]


@pytest.mark.parametrize("view", ["overview", "topics", "groups", "connections"])
def test_before_the_first_answer_it_says_whom_it_waits_for(view: str) -> None:
    model = Model()
    model.about = attrs.evolve(model.about, source="far.example:9092")
    found = Ui(all_views(), view)

    assert "Waiting for far.example:9092" in shown(found, model)

    model.topics.replace({}, 1.0)
    model.groups.replace({}, 1.0)
    model.connections.replace({}, 1.0)
    model.figures.put("topics", 1.0, 0)
    assert "Waiting" not in shown(found, model)


def test_why_a_list_could_not_be_read_is_told_in_full() -> None:
    model = Model()
    model.topics.fail("nobody was there; " + "and why " * 40 + "until the end")
    found = Ui(all_views(), "topics")

    assert "until the end" in shown(found, model, (60, 15))
