from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import pytest

from trionet.dashboard.drawing._cells import UNICODE
from trionet.dashboard.drawing._export import as_text
from trionet.dashboard.drawing._table import Column, Table
from trionet.dashboard.model._model import Model
from trionet.dashboard.sources._source import Source
from trionet.dashboard.terminal._keys import Event, Key, Mouse, Paste
from trionet.dashboard.ui._key_handler import KeyHandler
from trionet.dashboard.ui._screen import draw
from trionet.dashboard.ui._ui import Mode, Ui
from trionet.dashboard.ui._view import (
    Act,
    Action,
    Effect,
    Export,
    Field,
    Quit,
    Redraw,
    UseMouse,
    UseTheme,
    View,
)


@attrs.frozen
class Fruit:
    name: str
    weight: int


async def _buy(source: Source, row: Any, answers: Sequence[str]) -> str:
    raise AssertionError("an action is carried out by the application")


def _is_number(answer: str) -> str | None:
    return None if answer.isdecimal() else "must be a number"


BUY = Action(
    "B",
    "buy",
    "buy fruit",
    _buy,
    fields=(
        Field("how many", lambda row: str(row.weight), _is_number),
        Field("for whom", is_optional=True),
    ),
    question=lambda row, answers: f"Buy {answers[0]} {row.name}?",
)
EAT = Action("E", "eat", "eat", _buy, needs_row=False)
SELL = Action("S", "sell", "sell", _buy, refused=lambda model: "nobody buys here")


class Fruits(View):
    name = "fruits"
    key = "1"
    title = "Fruits"
    help = "What grows."
    opens = "fruit"
    actions: Sequence[Action] = (BUY, EAT, SELL)
    rows: Sequence[Fruit] = (Fruit("apple", 3), Fruit("banana", 2), Fruit("cherry", 1))

    def table(self, model: Model) -> Table[Fruit]:
        return Table(
            (
                Column("name", "NAME", 10, lambda row: row.name),
                Column("weight", "WEIGHT", 8, lambda row: row.weight, right=True),
            ),
            self.rows,
            key=lambda row: row.name,
        )

    def opened(self, row: Fruit) -> View:
        return Inside(row)


class Inside(View):
    name = "inside"
    help = "One fruit."

    def __init__(self, row: Fruit) -> None:
        self.title = row.name


class Stones(View):
    name = "stones"
    key = "2"
    title = "Stones"
    help = "What does not grow."


class Player:
    """Presses keys, and has the screen drawn after each, as the application does."""

    def __init__(self) -> None:
        self.model = Model()
        self.ui = Ui([Fruits(), Stones()], "fruits")
        self.keys = KeyHandler(self.ui)
        self.screen = ""
        self.draw()

    def draw(self) -> None:
        self.screen = as_text(draw(self.ui, self.model, 80, 24, UNICODE))

    def send(self, event: Event) -> Effect | None:
        effect = self.keys.press(event, self.model)
        self.draw()
        return effect

    def press(self, *keys: str) -> Effect | None:
        effect = None
        for key in keys:
            effect = self.send(Key(key))
        return effect

    def type(self, text: str) -> Effect | None:
        return self.press(*text)

    @property
    def foot(self) -> str:
        # A message that is long has three lines; above are empty ones.
        return " ".join(" ".join(self.screen.rstrip("\n").split("\n")[-3:]).split())

    @property
    def selected(self) -> str:
        row = self.ui.current.selected
        assert row is not None
        return str(row.name)


@pytest.fixture
def player() -> Player:
    return Player()


@pytest.mark.parametrize("key", ["q", "ctrl-c"])
def test_quitting(player: Player, key: str) -> None:
    assert Quit() == player.press(key)


def test_moving(player: Player) -> None:
    for key, chosen in [
        ("j", "banana"),
        ("down", "cherry"),
        ("j", "cherry"),
        ("k", "banana"),
        ("G", "cherry"),
        ("g", "apple"),
        ("end", "cherry"),
        ("home", "apple"),
        ("pagedown", "cherry"),
        ("pageup", "apple"),
        ("ctrl-d", "cherry"),
        ("ctrl-u", "apple"),
        ("up", "apple"),
    ]:
        player.press(key)
        assert chosen == player.selected


def test_views_are_reached_by_key_by_tab_and_by_name(player: Player) -> None:
    for keys, title in [
        (["2"], "Stones"),
        (["1"], "Fruits"),
        (["`"], "Stones"),
        (["tab"], "Fruits"),
        (["tab"], "Stones"),
        (["backtab"], "Fruits"),
        ([":", *"sto", "enter"], "Stones"),
    ]:
        player.press(*keys)
        assert title == player.ui.current.view.title


def test_a_view_is_left_as_it_was(player: Player) -> None:
    player.press("j", "enter")
    assert "Fruits → banana" in player.screen
    player.press("2", "1")
    assert "Fruits → banana" in player.screen
    player.press("1")
    assert "banana" == player.selected
    player.press("enter", "esc")
    assert "banana" == player.selected


def test_a_filter_is_tried_while_it_is_typed(player: Player) -> None:
    player.press("/", *"an")
    assert "/an" == player.foot
    assert ["banana"] == [row.name for row in player.ui.current.rows]
    player.press("enter")
    assert "filter an" in player.screen
    player.press("/", "backspace", "backspace", *"rr", "esc")
    assert "filter an" in player.screen
    player.press("esc")
    assert 3 == len(player.ui.current.rows)


def test_a_pasted_filter_is_one_line(player: Player) -> None:
    player.press("/")
    player.send(Paste("cher\nq\n"))

    assert ["cherry"] == [row.name for row in player.ui.current.rows]
    assert Mode.FILTER is player.ui.mode


def test_what_is_pasted_elsewhere_is_no_command(player: Player) -> None:
    assert player.send(Paste("q")) is None


def test_earlier_commands_come_again(player: Player) -> None:
    player.press(":", *"sort name", "enter", ":", *"pause", "enter", ":", "up", "up", "enter")

    assert "name" == player.ui.current.sorted_by
    player.press(":", "up", "down")
    assert ":" == player.foot


def test_pausing_and_going_on(player: Player) -> None:
    player.press("p")
    assert "PAUSED" in player.screen
    player.press(" ")
    assert "PAUSED" not in player.screen


def test_how_often_it_looks(player: Player) -> None:
    assert 1.0 == player.ui.refresh_seconds
    player.press("+")
    assert (0.5, "refresh every 0.5 s") == (player.ui.refresh_seconds, player.foot)
    player.press("+", "+", "+")
    assert 0.2 == player.ui.refresh_seconds
    player.press(*"-" * 20)
    assert 60 == player.ui.refresh_seconds
    player.press(":", *"refresh 3", "enter", "-")
    assert 5 == player.ui.refresh_seconds


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("nonsense", "! nonsense: unknown command; available: fruits, stones, buy"),
        ("friuts", "! friuts: unknown command; the closest match is fruits; available: fruits"),
        ("s", "! s: unknown command; available: stones, sell, sort"),
        ("quit now", "! quit: takes no arguments"),
        ("sort", "! sort: usage: COLUMN [asc|desc]; columns: name, weight"),
        ("sort name up", "! sort: usage: COLUMN [asc|desc]; columns: name, weight"),
        ("refresh often", "! refresh: usage: SECONDS, from 0.2 to 60"),
        ("refresh nan", "! refresh: usage: SECONDS, from 0.2 to 60"),
        ("export", "! export: usage: FILE, with the extension .svg, .html, .txt, .json, .csv"),
        ("export a.png", "! export: usage: FILE, with the extension .svg"),
        ("theme blue", "! theme: usage: dark, light or auto"),
        ("mouse maybe", "! mouse: usage: on or off"),
        ("stones apple", "! stones: takes no arguments; to filter, use /apple"),
        ("buy 'x", "! buy 'x: No closing quotation"),
        ("buy many", "! how many: must be a number"),
        ("buy 3 me too", "! buy: too many arguments; expected HOW MANY FOR WHOM"),
    ],
)
def test_a_command_that_is_wrong_says_what_is_right(
    player: Player, command: str, said: str
) -> None:
    assert player.press(":", *command, "enter") is None

    assert player.foot.startswith(said[:76])
    player.press("j")
    assert player.foot.endswith("q quit")


@pytest.mark.parametrize(
    ("command", "effect"),
    [
        ("q", Quit()),
        ("quit", Quit()),
        ("export a.svg", Export("a.svg")),
        ("export 'with blanks.csv'", Export("with blanks.csv")),
        ("mouse on", UseMouse(on=True)),
        ("mouse off", UseMouse(on=False)),
        ("theme light", UseTheme("light")),
        ("theme auto", UseTheme(None)),
        ("eat", Act(EAT, None, ())),
        ("", None),
    ],
)
def test_commands(player: Player, command: str, effect: Effect | None) -> None:
    assert effect == player.press(":", *command, "enter")


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("st", ":stones "),
        ("s", ":s"),
        ("fil", ":filter "),
        ("sort w", ":sort weight "),
        ("x", ":x"),
    ],
)
def test_commands_are_completed(player: Player, typed: str, completed: str) -> None:
    player.press(":", *typed, "tab")

    assert completed.strip() == player.foot
    assert completed[1:] == player.ui.editor.text


def test_an_action_asks_for_what_it_needs_and_whether_it_shall_be(player: Player) -> None:
    player.press("B")
    assert "buy fruit, how many: 3" == player.foot
    player.press("backspace", "x", "enter")
    assert "! how many: must be a number buy fruit, how many: x" == player.foot
    player.press("backspace", "enter")
    assert player.foot.startswith("! how many: required")
    player.press("7", "enter")
    assert "buy fruit, for whom:" == player.foot
    player.press("enter")
    assert player.foot.startswith("Buy 7 apple?")
    assert player.foot.endswith("[y/N]")

    assert Act(BUY, Fruit("apple", 3), ("7", "")) == player.press("y")


@pytest.mark.parametrize("key", ["n", "enter", "esc", "q"])
def test_what_is_not_confirmed_is_not_done(player: Player, key: str) -> None:
    player.press(":", *"buy 1 me", "enter")

    assert player.press(key) is None
    assert "buy fruit: cancelled" == player.foot
    assert Mode.BROWSE is player.ui.mode


def test_asking_is_given_up(player: Player) -> None:
    player.press("B", "esc")

    assert "buy fruit: cancelled" == player.foot
    assert player.ui.prompt is None


def test_the_words_of_a_command_are_answers(player: Player) -> None:
    player.press("j", ":", *"buy 5", "enter")
    assert "buy fruit, for whom:" == player.foot
    player.press(*"Bob", "enter")

    assert Act(BUY, Fruit("banana", 2), ("5", "Bob")) == player.press("y")


def test_what_cannot_be_done_here_says_why(player: Player) -> None:
    assert player.press("S") is None
    assert "! sell: nobody buys here" == player.foot


def test_without_a_row_there_is_nothing_to_do_it_with(player: Player) -> None:
    player.press("/", *"nothing", "enter", "B")

    assert "! buy fruit: select a row first" == player.foot
    player.press("j")
    assert "B buy fruit" not in player.foot
    player.press("esc")
    assert "B buy fruit" in player.foot


def test_the_help_is_read_and_left(player: Player) -> None:
    for key in ("?", "f1"):
        player.press(key)
        assert "What grows." in player.screen
        assert "buy fruit (:buy)" in player.screen
        player.press("pagedown")
        assert "What grows." not in player.screen
        player.press("G", "esc")
        assert "NAME" in player.screen
    player.press("?")
    assert Quit() == player.press("q")


def test_the_mouse_chooses_opens_sorts_and_switches(player: Player) -> None:
    rows = player.screen.split("\n")
    banana = next(number for number, line in enumerate(rows) if line.startswith(" banana"))

    player.send(Mouse("press", 3, banana))
    assert "banana" == player.selected
    player.send(Mouse("press", 15, banana - 2))
    assert ("weight", True) == (player.ui.current.sorted_by, player.ui.current.descending)
    player.send(Mouse("wheel-down", 3, 10))
    assert "cherry" == player.selected
    player.send(Mouse("press", 3, banana))
    player.send(Mouse("press", 3, banana))
    assert "Fruits → banana" in player.screen
    player.send(Mouse("press", rows[1].index("stones"), 1))
    assert "Stones" == player.ui.current.view.title
    player.send(Mouse("release", 2, 1))
    player.send(Mouse("press", 2, 23))
    player.send(Mouse("press", 2, 1, button=2))
    assert "Stones" == player.ui.current.view.title


def test_what_is_at_the_bottom_is_clicked_like_pressed(player: Player) -> None:
    def click(text: str) -> Effect | None:
        row, line = next(
            (row, line)
            for row, line in enumerate(player.screen.split("\n"))
            if row > 1 and text in line
        )
        return player.send(Mouse("press", line.index(text), row))

    assert Quit() == click("q quit")
    click("enter fruit")
    assert "Fruits → apple" in player.screen
    click("esc back")
    click("/ filter")
    player.send(Mouse("press", 2, 1))  # a tab, whose key would be typed
    player.press("esc")
    assert not player.ui.current.filter
    click("E eat")
    assert Act(EAT, None, ()) == player.press("E")
    player.press("B", "enter", "enter")
    assert "Buy 3 apple?" in player.screen
    assert Act(BUY, Fruit("apple", 3), ("3", "")) == click("y/N")


def test_a_view_is_chosen_from_the_list_of_all(player: Player) -> None:
    player.press(".", "j")
    assert "2  Stones" in player.screen
    player.press("enter")
    assert "Stones" == player.ui.current.view.title

    player.press(".", "1")
    assert "Fruits" == player.ui.current.view.title

    player.press(".", "k", "esc")
    assert "Fruits" == player.ui.current.view.title
    assert Mode.BROWSE is player.ui.mode
    player.press(".")
    row = next(n for n, line in enumerate(player.screen.split("\n")) if "2  Stones" in line)
    player.send(Mouse("press", 40, row))
    assert "Stones" == player.ui.current.view.title
    player.press(".")
    assert Quit() == player.press("q")


def test_the_wheel_scrolls_what_is_seen(player: Player) -> None:
    player.send(Mouse("wheel-down", 3, 10))
    assert "cherry" == player.selected
    player.press("?")
    player.send(Mouse("wheel-down", 3, 10))
    assert 3 == player.ui.help_top
    player.send(Mouse("wheel-up", 3, 10))
    assert 0 == player.ui.help_top


def test_the_screen_is_drawn_anew(player: Player) -> None:
    assert Redraw() == player.press("ctrl-l")
    player.press("/")
    assert Redraw() == player.press("ctrl-l")


def test_exporting_proposes_a_name(player: Player) -> None:
    player.press("x")
    assert ":export fruits.svg" == player.foot

    assert Export("fruits.svg") == player.press("enter")


def test_keys_that_mean_nothing_do_nothing(player: Player) -> None:
    before = player.screen

    for key in ("f7", "ctrl-right", "insert", "ü", "Z"):
        assert player.press(key) is None

    assert before == player.screen


def test_an_escape_and_a_key_that_were_read_at_once_are_two_keys(player: Player) -> None:
    player.press("enter")
    assert "Fruits → apple" in player.screen

    player.press("alt-2")

    assert "Stones" == player.ui.current.view.title
    assert 1 == len(player.ui._stacks["fruits"])


def test_what_is_typed_has_the_keys_of_a_shell(player: Player) -> None:
    for keys, text in [
        (["/", *"one two"], "one two"),
        (["ctrl-w"], "one "),
        (["home", "delete"], "ne "),
        (["right", "right", "left", "x"], "nxe "),
        (["end", "backspace", "ctrl-a", "ctrl-k"], ""),
        ([*"three", "ctrl-b", "ctrl-u"], "e"),
        (["ctrl-e", "alt-backspace"], ""),
        (["backspace"], ""),
    ]:
        player.press(*keys)
        assert text == player.ui.editor.text
    assert Mode.BROWSE is player.ui.mode
