from __future__ import annotations

import io
import re

import pytest
from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style

from trionet.dashboard.drawing import _palette as palette
from trionet.dashboard.terminal._ansi import Painter, is_interactive

UTF8 = "utf-8"


def painter(colors: ColorSystem | None = ColorSystem.TRUECOLOR) -> Painter:
    return Painter(colors, UTF8)


def lines(*texts: str) -> list[list[Segment]]:
    return [[Segment(text)] for text in texts]


def test_the_first_frame_is_whole_and_shown_at_once() -> None:
    data = painter().paint(lines("one", "two"))

    assert b"\x1b[?2026h\x1b[0m\x1b[2J\x1b[1;1Hone\x1b[2;1Htwo\x1b[?2026l" == data


def test_then_only_lines_that_changed_are_written() -> None:
    found = painter()
    found.paint(lines("one", "two", "three"))

    assert b"" == found.paint(lines("one", "two", "three"))
    assert b"\x1b[?2026h\x1b[2;1HTWO\x1b[?2026l" == found.paint(lines("one", "TWO", "three"))


def test_another_height_or_an_unknown_screen_is_drawn_whole() -> None:
    found = painter()
    found.paint(lines("one", "two"))

    assert b"\x1b[2J" in found.paint(lines("one", "two", "three"))
    found.forget()
    assert b"\x1b[2J" in found.paint(lines("one", "two", "three"))


@pytest.mark.parametrize(
    ("colors", "codes"),
    [
        (ColorSystem.TRUECOLOR, "1;38;2;255;155;125"),
        (ColorSystem.EIGHT_BIT, "1;38;5;210"),
        (ColorSystem.STANDARD, "1;91"),
        (None, "1"),
    ],
)
def test_colours_are_those_that_the_terminal_has(colors: ColorSystem | None, codes: str) -> None:
    data = painter(colors).paint([[Segment("!", palette.ALARM)]]).decode()

    assert f"\x1b[{codes}m!\x1b[0m" in data


def test_one_process_may_have_terminals_of_several_kinds() -> None:
    frame = [[Segment("!", palette.ALARM)]]

    found = {kind: painter(kind).paint(frame) for kind in (*ColorSystem, None)}

    assert len(found) - 1 <= len(set(found.values()))


def test_without_colours_attributes_stay() -> None:
    style = Style(dim=True, italic=True, underline=True, reverse=True, color="red", bgcolor="blue")

    data = painter(None).paint([[Segment("x", style)]]).decode()

    assert "\x1b[2;3;4;7mx\x1b[0m" in data
    assert not re.search(r"\x1b\[[\d;]*[34]\dm", data)


def test_after_characters_of_doubtful_width_the_column_is_reported() -> None:
    line = [Segment("日本"), Segment("|"), Segment("é"), Segment("|")]

    assert "日本\x1b[5G|é|" in painter().paint([line]).decode()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def sit_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a fixture: pytest puts its own streams in place before each test."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stdin", Terminal())
    monkeypatch.setattr("sys.stdout", Terminal())


def test_a_terminal_is_interactive(monkeypatch: pytest.MonkeyPatch) -> None:
    sit_down(monkeypatch)

    assert is_interactive()


@pytest.mark.parametrize("name", ["sys.stdin", "sys.stdout"])
def test_a_pipe_or_nothing_is_no_terminal(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    sit_down(monkeypatch)
    monkeypatch.setenv("FORCE_COLOR", "1")
    for stream in (io.StringIO(), None):
        monkeypatch.setattr(name, stream)
        assert not is_interactive()


@pytest.mark.parametrize("term", ["dumb", ""])
def test_nor_is_one_that_can_do_nothing(monkeypatch: pytest.MonkeyPatch, term: str) -> None:
    sit_down(monkeypatch)
    monkeypatch.setenv("TERM", term)

    assert not is_interactive()
