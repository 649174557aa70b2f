from __future__ import annotations

import re
import time
from collections.abc import Iterator
from operator import attrgetter
from typing import Any

import attrs
import pytest
from rich.cells import cell_len

from support import frames
from support.dashboard_model import HOSTILE_NAMES, ROWS, busy_model, filled, full_model
from trionet.dashboard.drawing._cells import ASCII, UNICODE, Frame, Glyphs
from trionet.dashboard.drawing._export import as_text
from trionet.dashboard.drawing._table import Column, Table
from trionet.dashboard.model._about import About
from trionet.dashboard.model._model import Model
from trionet.dashboard.model._rows import TopicRow
from trionet.dashboard.terminal._keys import Key
from trionet.dashboard.ui._bars import general_hints
from trionet.dashboard.ui._key_handler import KeyHandler
from trionet.dashboard.ui._screen import draw, failed_frame
from trionet.dashboard.ui._ui import Ui
from trionet.dashboard.ui._view import View
from trionet.dashboard.ui._view_state import ViewState
from trionet.dashboard.views import VIEWS, all_views


def ui(*keys: str, model: Model | None = None) -> Ui:
    found = Ui(all_views(), "overview")
    for key in keys:
        KeyHandler(found).press(Key(key), model or Model())
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
            KeyHandler(found).press(Key(key), model)
            yield draw(found, model, 120, 40, glyphs)
        for action in found.current.view.actions:
            KeyHandler(found).press(Key(action.key), model)
            for _ in range(len(action.fields) + 1):
                yield draw(found, model, 60, 15, glyphs)
                KeyHandler(found).press(Key("7"), model)
                KeyHandler(found).press(Key("enter"), model)
            for _ in range(2):
                KeyHandler(found).press(Key("esc"), model)


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_every_view_has_a_frame_of_nothing(view: type[View]) -> None:
    found = Ui(all_views(), view.name)

    text = shown(found, Model())

    assert found.current.view.title in text


def test_names_keys_and_helps_of_views_are_their_own() -> None:
    views = all_views()

    assert len(views) == len({view.name for view in views})
    assert len(views) == len({view.key for view in views})
    assert all(len(view.key) == 1 for view in views)
    general = {key for key, _ in general_hints(ui("2"))} | {"q", "?", "m", "x", "g", "j", "k"}
    for view in views:
        assert view.help
        assert not general & {view.key, *(link.key for link in view.links)}
        keys = [action.key for action in view.actions]
        assert len(keys) == len(set(keys))
        assert all(key.isupper() for key in keys)


def test_what_is_too_small_says_what_it_needs() -> None:
    text = shown(ui(), busy_model(), (59, 15))

    assert text.startswith("This screen has 59 x 15 cells.\nThe dashboard needs 60 x 15.\n")
    assert "This" == shown(ui(), busy_model(), (4, 1)).strip()


def test_of_a_view_that_failed_alarms_and_messages_are_seen() -> None:
    model = Model()
    model.set_alarm("topics", "topics could not be read: refused")
    lines = as_text(failed_frame(ui(":", "x", "enter"), model, "log", 60, 15, UNICODE)).split("\n")

    assert " ! The view log failed; see the log." == lines[0]
    assert " ! topics could not be read: refused" in lines
    assert lines[12].startswith(" ! x: unknown command")
    typing = as_text(failed_frame(ui("/", "a", "b"), model, "log", 60, 15, UNICODE)).split("\n")
    assert "/ab" == typing[14].rstrip()
    assert 15 == len(typing[:-1])


def test_faults_with_one_reason_are_one_alarm() -> None:
    model = busy_model()
    for what in ("topics", "groups", "cluster"):
        model.set_alarm(what, f"{what} could not be read: nobody answers")
    model.set_alarm("metrics", "metrics could not be read: refused")

    lines = shown(ui(), model).split("\n")

    assert " ! topics, groups, cluster could not be read: nobody answers" == lines[3].rstrip()
    assert " ! metrics could not be read: refused" == lines[4].rstrip()


def test_two_sources_that_say_the_same_say_it_once() -> None:
    model = busy_model()
    for what in ("topics", "groups"):
        model.set_alarm(what, "the cluster is another one")

    lines = shown(ui(), model).split("\n")

    assert " ! the cluster is another one" == lines[3].rstrip()
    assert not lines[4].startswith(" !")


def test_the_header_shows_pauses_and_missing_news() -> None:
    model = busy_model()

    assert shown(ui(), model).split("\n")[0].endswith(" live")
    assert shown(ui(), model, stale=2.9).split("\n")[0].endswith(" live")
    assert shown(ui(), model, stale=75).split("\n")[0].endswith(" ! no data for 1m 15s")
    assert shown(ui("p"), model, stale=75).split("\n")[0].endswith(" PAUSED: p resumes")


def test_the_header_is_live_only_once_there_was_a_response() -> None:
    model = Model()
    model.about = About(source="127.0.0.1:9092")

    assert header(model, 60.0).endswith(" connecting")
    model.responded_at = 60.0
    assert header(model, 60.0).endswith(" live")


def test_the_header_says_how_the_broker_is_read() -> None:
    model = busy_model()
    model.about = attrs.evolve(model.about, source="127.0.0.1:9092", via="local socket")

    assert " 127.0.0.1:9092 (local socket) " in header(model, 60.0)


def test_the_header_is_not_live_while_something_cannot_be_read() -> None:
    model = busy_model()
    model.set_alarm("metrics", "refused", since=40.0)
    model.set_alarm("topics", "refused", since=55.0)

    assert header(model, 60.0).endswith(" ! not live for 20 s")
    model.set_alarm("metrics", None)
    assert header(model, 60.0).endswith(" ! not live for 5.0 s")
    model.set_alarm("topics", None)
    assert header(model, 60.0).endswith(" live")


def header(model: Model, now: float) -> str:
    return as_text(draw(ui(), model, 120, 40, UNICODE, 0.0, now)).split("\n")[0]


def test_what_is_not_known_any_more_is_a_line_without_a_number() -> None:
    model = busy_model()
    before = lines_of(shown(ui(), model), " requests  ")
    model.mark_network_failed("refused")
    text = shown(ui(), model)

    assert before[0].split()[-1].endswith("/s")
    assert "-" == lines_of(text, " requests  ")[0].split()[-1]
    assert "loop idle" in text
    assert not re.search(r"\d/s| \d+ %", text)
    assert " up " not in text.split("\n")[0]


def lines_of(text: str, beginning: str) -> list[str]:
    return [line[:58].rstrip() for line in text.split("\n") if line.startswith(beginning)]


@pytest.mark.parametrize(("view", "title"), [("2", "Connections"), ("3", "APIs"), ("0", "Log")])
def test_rows_that_cannot_be_read_again_have_an_age(view: str, title: str) -> None:
    model = busy_model()
    model.mark_network_failed("refused")

    text = as_text(draw(ui(view), model, 120, 40, UNICODE, 0.0, 75.0))

    assert re.search(rf" {title}  \d+.*  ! as of 1[56] s ago", text)
    assert not re.search(r"\d/s", text)


def test_so_have_rows_that_are_read_seldom() -> None:
    found, model = ui("2"), busy_model()

    assert "as of" not in as_text(draw(found, model, 120, 40, UNICODE, 0.0, 62.5))
    assert "  as of 4.0 s ago" in as_text(draw(found, model, 120, 40, UNICODE, 0.0, 64.0))


LONG = "nobody was there; " + "and why " * 40 + "until the end"


def test_an_alarm_that_is_cut_says_so_and_the_help_has_all_of_it() -> None:
    model = busy_model()
    model.set_alarm("topics", LONG)
    lines = shown(ui("2"), model, (80, 24)).split("\n")

    assert lines[3].startswith(" ! nobody was there;")
    assert lines[4].rstrip().endswith("…")
    assert lines[5].startswith(" PEER")
    text = " ".join(shown(ui("?"), model, (80, 24)).split())
    assert LONG in text


def test_of_many_alarms_the_number_is_reported() -> None:
    model = busy_model()
    for number in range(4):
        model.set_alarm(f"{number}", f"fault {number} " + "x" * 200)
    lines = shown(ui("2"), model, (80, 24)).split("\n")

    assert lines[3].startswith(" ! fault 0 x")
    assert lines[3].rstrip().endswith("…")
    assert lines[4].rstrip() == " ! and 3 more problems; press ? to see all"
    assert all(f"! fault {n}" in shown(ui("?"), model, (80, 24)) for n in range(4))


def test_a_long_message_has_more_lines() -> None:
    found, model = ui(), busy_model()
    found.show_message("it failed " * 11 + "at last", is_alarm=True)
    lines = shown(found, model, (60, 15)).rstrip("\n").split("\n")

    assert ["! it failed"] * 1 == [line.strip()[:11] for line in lines[-3:-2]]
    assert lines[-1].rstrip().endswith("at last")
    found.show_message("it failed " * 50)
    assert shown(found, model, (60, 15)).rstrip("\n ").endswith("…")


def test_what_is_typed_is_seen_behind_a_label_that_is_longer_than_the_screen() -> None:
    """Nothing that is asked may hold the loop, which a broker may share."""
    model = full_model("billing")
    found = ui("6")
    shown(found, model)
    for key in ("R", *"soon", "enter"):
        KeyHandler(found).press(Key(key), model)
        shown(found, model, (60, 15))
    lines = shown(found, model, (60, 15)).rstrip("\n").split("\n")

    assert re.fullmatch(r" reset a group, to \(start, end, .*… soon", lines[-1].rstrip())
    assert "use start, end, an offset" in " ".join(" ".join(lines[-3:-1]).split())


def test_a_question_is_shown_to_its_end() -> None:
    model = busy_model()
    name = "x" * 60 + "end"
    model.topics.replace({name: filled(TopicRow, name)}, 1.0)
    found = ui("5")
    shown(found, model)
    KeyHandler(found).press(Key("D"), model)
    lines = shown(found, model, (60, 15)).rstrip("\n").split("\n")

    assert "end and all its records?" in " ".join("".join(lines[-3:]).split())
    assert lines[-1].rstrip().endswith(" [y/N]")


def test_a_line_that_is_cut_has_a_mark() -> None:
    model = busy_model()
    found = ui("2")
    found.current.filter = "long " * 40

    assert shown(found, model, (60, 15)).split("\n")[2].endswith("long long…")
    text = as_text(draw(found, model, 60, 15, ASCII))
    assert text.split("\n")[2].endswith("long long~")


def test_alarms_are_reported_in_every_view() -> None:
    model = busy_model()
    model.set_alarm("metrics", "http://127.0.0.1:9404 could not be read: refused")

    for view in all_views():
        assert " ! http://127.0.0.1:9404 could not" in shown(Ui(all_views(), view.name), model)


def test_a_list_that_is_missing_says_why() -> None:
    model = Model()
    model.mark_network_missing("not available over the Kafka protocol")

    for key in "23":
        assert " not available over the Kafka protocol" in shown(ui(key), model)


def test_of_rows_that_are_not_here_the_number_is_reported() -> None:
    model = busy_model()
    model.replace_rows("connections", {}, 812, 61.0)

    assert " Connections  0 of 812" in shown(ui("2"), model)


def test_a_filter_that_finds_nothing_says_so() -> None:
    model = busy_model()
    found = ui("2")
    found.current.filter = "nobody"

    text = shown(found, model)

    assert " Connections  0 of 30  filter nobody" in text
    assert "No row matches 'nobody'." in text


def views_with_tables() -> Iterator[tuple[View, Table[Any]]]:
    """All views that are tables: those with tabs, those that they open, and those they link to."""
    model = full_model("orders")
    pending = all_views()
    seen: set[str] = set()
    while pending:
        view = pending.pop()
        if view.name in seen:
            continue
        seen.add(view.name)
        table = view.table(model)
        row = None
        if table is not None:
            yield view, table
            row = next(iter(table.rows), None)
        opened = None if row is None else view.opened(row)
        if opened is not None:
            pending.append(opened)
        pending += [link.to(row) for link in view.links if row is not None or not link.needs_row]


TABLES = list(views_with_tables())
NAMES = [view.name for view, _ in TABLES]

#: Titles of columns that are the words for it.
WORDS = """
    ANOMALIES API ASSIGNMENT BYTES CLIENT CLIENTS CONFIG CONNECTION DETAIL END ERRORS FAULT GROUP
    HOST ID KEY LEVEL LIMIT LISTENER LOGGER MEMBER MEMBERS MESSAGE MINUTE OFFSET PARTITIONS PHASES
    PORT QUOTA RACK READ-ONLY REASON REQUEST REQUESTS RESPONSE SCORE SHARE SOURCE START STATE TASK
    TIME TOPIC TRANSACTIONAL VALUE
"""
SENTENCES = ("WHERE THE TIME GOES", "WHAT THE CLIENT DID NEXT", "OF THE LOOP")


@pytest.mark.parametrize(("view", "table"), TABLES, ids=NAMES)
def test_the_help_explains_each_title_that_is_not_the_word_for_it(
    view: View, table: Table[Any]
) -> None:
    explained = {*view.terms, *(word for title in view.terms for word in title.split())}
    titles = {column.title for column in table.columns if column.width}
    abbreviated = {
        title
        for title in titles - explained - set(SENTENCES)
        if not set(title.removeprefix("! ").split()) <= set(WORDS.split())
    }

    assert set() == abbreviated
    found = Ui(all_views(), "overview")
    found.trail.append(ViewState(view))
    KeyHandler(found).press(Key("?"), Model())
    page = shown(found, Model(), (120, 200))
    for title in view.terms:
        assert f" {title} " in page


def test_the_overview_explains_the_titles_of_its_tables() -> None:
    page = shown(ui("?"), busy_model(), (80, 100))

    for title in ("STAGED", "REQ/S", "P50 P99", "ERR/S"):
        assert f" {title} " in page


@pytest.mark.parametrize(("view", "table"), TABLES, ids=NAMES)
def test_a_view_has_a_sentence_for_no_rows(view: View, table: Table[Any]) -> None:
    # A topic has partitions, and requests that are to come have a sentence of their own.
    if view.name not in ("partitions", "connection"):
        assert re.match(r"No .*\.", view.empty)


@pytest.mark.parametrize("key", [view.key for view in VIEWS if view.name != "overview"])
def test_an_empty_view_has_no_rows_yet_and_the_next_step(key: str) -> None:
    model = Model()
    for attribute in ROWS:
        attrgetter(attribute)(model).replace({}, 1.0)
    for attribute in ("apis", "connections", "processors", "log"):
        getattr(model, attribute).replace({}, 1.0)
    found = ui(key)

    text = " ".join(shown(found, model, (80, 24)).split())

    assert " ".join(found.current.view.empty.split()) in text


def test_the_order_is_said_in_the_words_of_the_heading() -> None:
    found = ui("2")
    model = busy_model()
    shown(found, model)
    found.current.sort_by("age_seconds")

    text = shown(found, model)

    assert "  by AGE ▼" in text
    assert "age_seconds" not in text
    for key in (":", *"sort client id desc", "enter"):
        KeyHandler(found).press(Key(key), model)
    assert "  by CLIENT ID ▼" in shown(found, model)


@pytest.mark.parametrize(
    ("width", "tabs"),
    [
        (
            200,
            (
                " 1 overview   2 connections   3 apis  4 processors  5 topics  6 groups  7 quotas"
                "  8 closes  9 pipeline  0 log  t trio  b brokers  e sessions  n transactions"
                "  u faults"
            ),
        ),
        (
            130,
            (
                " 1 overview  2 conns  3 apis 4 procs 5 topics 6 groups 7 quotas 8 closes"
                " 9 pipeline 0 log t trio b brokers e sess n txns u faults"
            ),
        ),
        (
            120,
            (
                " 1 overview  2 conns  3 apis 4 procs 5 topics 6 groups 7 quotas 8 closes"
                " 9 pipeline 0 log t trio b brokers . 3 more"
            ),
        ),
        (
            80,
            " 1 overview  2 conns  3 apis 4 procs 5 topics 6 groups 7 quotas . 8 more",
        ),
        (60, " 1 overview  2 conns  3 apis 4 procs 5 topics . 10 more"),
    ],
)
def test_tabs_shrink_but_are_never_cut(width: int, tabs: str) -> None:
    assert tabs == tab_line(ui("2"), width)


def tab_line(ui: Ui, width: int) -> str:
    return shown(ui, busy_model(), (width, 24)).split("\n")[1]


@pytest.mark.parametrize("width", [60, 80, 120, 130, 200])
def test_a_view_has_one_label_whether_it_is_shown_or_not(width: int) -> None:
    first = tab_line(ui(), width).partition(" . ")[0].split()
    for view in VIEWS:
        line = tab_line(ui(view.key), width).split()
        expected = view.name if width == 200 else view.short or view.name
        assert expected == line[line.index(view.key) + 1]
        # It may take the place of the last one.
        assert line[: len(first) - 2] == first[: len(first) - 2]


def test_a_short_label_is_an_abbreviation_of_the_name() -> None:
    for view in VIEWS:
        assert view.name.startswith(view.short[:1])
        assert len(view.short) < len(view.name)


def test_the_tab_of_a_view_without_room_is_there_while_it_is_shown() -> None:
    assert tab_line(ui("n"), 80).endswith(" 6 groups 7 quotas  n txns  . 7 more")


def test_more_tabs_than_a_line_has_room_for_are_in_the_list_of_all() -> None:
    class Page(View):
        help = title = "A page."

    pages = [
        type(f"Page{number}", (Page,), {"name": f"page-{number}", "key": chr(0x100 + number)})()
        for number in range(40)
    ]

    line = shown(Ui(pages, "page-39"), busy_model(), (60, 24)).split("\n")[1]

    assert line.startswith(" Ā page-0 ā page-1 ")
    assert line.endswith(" ħ page-39  . 35 more")


@pytest.mark.parametrize(
    ("width", "own"),
    [
        (
            140,
            (
                "enter partitions  f records  c configs  C create a topic  D delete a topic"
                "  N add partitions  P produce a record"
            ),
        ),
        (100, "enter partitions  f records  c configs  C create  D delete  N add  P produce"),
        (80, "enter partitions  f records  c configs  C create  D  N  P"),
        (60, "enter partitions  f  c  C  D  N  P"),
    ],
)
def test_hints_shrink_but_are_never_cut(width: int, own: str) -> None:
    model = busy_model()
    model.topics.replace({"orders": filled(TopicRow, "orders")}, 60.0)

    foot = shown(ui("5"), model, (width, 24)).split("\n")[23]

    assert foot.startswith(f" {own}  ")
    assert foot.endswith("? help  q quit")


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_a_view_says_what_enter_opens(view: type[View]) -> None:
    found = ui(*([] if view.name == "overview" else [view.key]))
    draw(found, full_model("orders"), 120, 40, UNICODE)

    row = found.current.selected

    assert bool(view.opens) == (row is not None and found.current.view.opened(row) is not None)


def test_details_of_the_chosen_row_are_where_there_is_room() -> None:
    model = busy_model()

    below = shown(ui("2"), model, (120, 40)).split("\n")
    beside = shown(ui("2"), model, (200, 60)).split("\n")
    small = shown(ui("2"), model, (80, 24))

    [at] = [number for number, line in enumerate(below) if "── 127.0.0.1:40000 ──" in line]
    assert 20 < at
    assert any("software          librdkafka 2.6.0" in line for line in below[at:])
    assert "│── 127.0.0.1:40000 ──" in beside[3]
    assert any(line.endswith("MUTED") for line in beside)
    assert "librdkafka" not in small
    assert "── 127" not in shown(ui("2", "w"), model, (120, 40))


def test_the_help_has_two_columns_where_there_is_room_and_is_never_cut() -> None:
    wide = shown(ui("?"), busy_model(), (120, 40)).split("\n")
    narrow = shown(ui("?"), busy_model(), (80, 60)).split("\n")

    assert wide[3].startswith("── Overview ──")
    assert " ── Keys ──" in wide[3]
    assert "── Keys ──" not in narrow[3]
    for lines in (wide, narrow):
        assert "…" not in "".join(lines)
        assert any("shift and drag  select text; without" in line for line in lines)
        assert lines[-2].startswith(" esc close  j down  k up")


def test_details_follow_the_cursor() -> None:
    model = busy_model()
    found = ui("2")
    draw(found, model, 120, 40, UNICODE)

    KeyHandler(found).press(Key("j"), model)

    assert "── 127.0.0.1:40001 ──" in shown(found, model)


def test_details_take_no_more_room_than_they_need() -> None:
    model = busy_model()
    found = ui("2")
    lines = shown(found, model).split("\n")

    [at] = [number for number, line in enumerate(lines) if "── 127.0.0.1:40000 ──" in line]
    # The last line above the hints is one of the details.
    assert lines[37].strip()
    assert at - 4 == found.current.height


def test_a_value_that_is_wider_than_a_field_has_a_line_of_its_own() -> None:
    model = busy_model()
    number, row = next(iter(model.connections.items()))
    principal, software = "User:" + "a" * 30, "long " * 60
    row = attrs.evolve(row, principal=principal, software=software)
    model.connections.amend({number: row})

    below = shown(ui("2"), model, (120, 40))
    beside = shown(ui("2"), model, (200, 60))

    for text in (below, beside):
        assert principal in text
        assert row.id in text
    lines = below.split("\n")
    [at] = [number for number, line in enumerate(lines) if line.startswith(" software ")]
    assert lines[at + 1].startswith(" " * 19 + "long ")
    assert lines[at + 2].rstrip().endswith("…")


@pytest.mark.parametrize("size", [(100, 40), (120, 40), (160, 50), (200, 60)], ids=str)
def test_the_whole_name_of_the_chosen_row_is_in_its_details(size: tuple[int, int]) -> None:
    model = busy_model()
    name = "settlements.card-payments.by-merchant.and-currency.hourly.aggregates.v2"
    model.topics.replace({name: attrs.evolve(filled(TopicRow, "orders"), name=name)}, 60.0)

    lines = shown(ui("5"), model, size).split("\n")

    details = "".join(line.rpartition("│")[2][19:].strip() for line in lines[4:])
    assert name in details or any(f"── {name} ──" in line for line in lines)


@pytest.mark.parametrize("size", [(100, 30), (120, 40), (200, 60)], ids=str)
def test_the_name_of_a_field_does_not_touch_its_value(size: tuple[int, int]) -> None:
    text = shown(ui("4"), busy_model(), size)

    assert re.search(r"request queue full +0\b", text)
    assert re.search(r"bytes received rate +\d+ KiB", text)


def test_the_longest_name_of_a_field_is_cut_before_its_value_is() -> None:
    class Long(View):
        name = title = help = "long"

        def table(self, model: Model) -> Table[str]:
            columns: list[Column[str]] = [
                Column("a", "A", 9, str),
                Column("very_" * 8, "B", 9, lambda _: "v" * 13),
            ]
            return Table(columns, ["row"], key=str)

    text = shown(Ui([Long()], "long"), Model(), (120, 40))

    assert f" very very very very ver… {'v' * 13}" in text


def test_a_graph_of_a_row_says_what_it_shows_how_much_and_of_which_time() -> None:
    lines = shown(ui("3"), busy_model()).split("\n")

    [at] = [number for number, line in enumerate(lines) if line.startswith(" trend of REQ/S ")]
    assert re.match(r" up to \d,\d{3} ", lines[at + 1])
    assert re.match(r" {19}58 s ago +now$", lines[at + 4])
    beside = shown(ui("3"), busy_model(), (200, 60))
    assert re.search(r" TREND 1\d s ", beside)
    for title in ("Phases, mean of the last 10", "Requests by total time, last 10 seconds"):
        assert f"── {title}" in beside


@pytest.mark.parametrize("size", frames.SIZES, ids=str)
def test_the_charts_of_the_overview_say_of_which_time_they_are(size: tuple[int, int]) -> None:
    model = busy_model()
    for second in range(60):
        model.figures.put("lag", float(second), 12)

    text = shown(ui(), model, size)

    wide = size[0] >= 110
    charted = ("Traffic", "Connections", "Cluster") if wide else ("Traffic", "Load")
    for title in charted:
        assert re.search(rf"── {title} ─+ last [\d.]+ s ──", text)
    assert not re.search(r"── Resources ─+ last", text)


def test_details_are_frozen_with_the_screen() -> None:
    model = busy_model()
    found = ui("3")
    before = shown(found, model)
    KeyHandler(found).press(Key("p"), model)
    model.apis.replace({}, 61.0)

    after = shown(found, model)

    assert before.split("\n")[1:] == after.split("\n")[1:]


def test_all_that_matters_is_on_a_small_overview() -> None:
    model = full_model("orders")
    model.figures.put("topics", 60.0, 3)
    model.figures.put("lag", 60.0, 12)

    text = shown(ui(), model, (80, 24))

    for word in ("requests", "loop idle", "group lag", "topics 3", "Muted and staged", "Produce"):
        assert word in text


def test_a_long_command_is_typed_with_its_end_in_sight() -> None:
    found = ui(":", *"sort " + "x" * 100)

    foot = shown(found, busy_model(), (60, 15)).split("\n")[14]

    assert re.fullmatch(r":x+", foot)


def test_the_chosen_row_stays_in_sight() -> None:
    model = busy_model()
    found = ui("2")
    for key in ["j"] * 25:
        draw(found, model, 80, 24, UNICODE)
        KeyHandler(found).press(Key(key), model)
    frame = draw(found, model, 80, 24, UNICODE)

    rows = [line for line in frame.lines if line[0].style and line[0].style.reverse]
    assert ["127.0.0.1:40025"] == [line[0].text.split()[0] for line in rows[-1:]]


@pytest.mark.parametrize("view", ["overview", "topics", "groups", "connections"])
def test_before_the_first_response_it_says_what_it_waits_for(view: str) -> None:
    model = Model()
    model.about = attrs.evolve(model.about, source="far.example:9092")
    found = Ui(all_views(), view)

    assert "Waiting for far.example:9092" in shown(found, model)

    if view != "overview":
        model.responded_at = 1.0
        assert "Reading from far.example:9092" in shown(found, model)

    model.topics.replace({}, 1.0)
    model.groups.replace({}, 1.0)
    model.connections.replace({}, 1.0)
    model.figures.put("topics", 1.0, 0)
    assert "Waiting" not in shown(found, model)


def test_why_a_list_could_not_be_read_is_reported_in_full() -> None:
    model = Model()
    model.topics.mark_failed("nobody was there; " + "and why " * 40 + "until the end")
    found = Ui(all_views(), "topics")

    assert "until the end" in shown(found, model, (60, 15))


@pytest.mark.parametrize("view", ["1", "2", "4"], ids=["overview", "connections", "processors"])
def test_a_pause_keeps_nothing_before_something_has_come(view: str) -> None:
    found, model = ui(view, "p"), busy_model()

    assert " Waiting for " in shown(found, Model())
    came = shown(found, model)

    assert " PAUSED: p resumes" in came
    assert body(shown(ui(view), model)) == body(came)
    assert body(came) == body(shown(found, Model()))


def body(text: str) -> str:
    """What is below the header."""
    return text.partition("\n")[2]
