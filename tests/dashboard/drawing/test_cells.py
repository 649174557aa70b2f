from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from trionet.dashboard.drawing._cells import (
    ASCII,
    CHARS_MAX,
    UNICODE,
    Glyphs,
    Line,
    Pen,
    bar,
    fit,
    fit_sanitized,
    heat,
    sanitized,
    shares,
)

GLYPHS = pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("süß 日本", "süß 日本"),
        ("\x1b[2Jgone", "\\u001b[2Jgone"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("\x9b2J", "\\u009b2J"),
        ("\u202eevil", "\\u202eevil"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("[bold]no markup[/nope]", "[bold]no markup[/nope]"),
        ("back\\slash", "back\\\\slash"),
        ("\udce4", "\\udce4"),
    ],
)
def test_nothing_reaches_the_terminal_that_it_might_obey(text: str, shown: str) -> None:
    assert shown == sanitized(text)


def test_without_unicode_everything_else_is_an_escape() -> None:
    assert "s\\xfc\\xdf \\u65e5 12 us~" == sanitized("süß 日 12 µs…", ASCII)


def test_a_text_that_no_screen_shows_is_cut_before_it_is_looked_at() -> None:
    assert "x" * CHARS_MAX + "…" == sanitized("x" * 1_000_000)


@GLYPHS
@given(text=st.text(), width=st.integers(0, 40), right=st.booleans())
def test_a_text_fits_exactly(glyphs: Glyphs, text: str, width: int, right: bool) -> None:
    shown = fit(sanitized(text, glyphs), width, right=right, glyphs=glyphs)

    assert width == cell_len(shown)
    assert shown.isprintable()
    assert shown.isascii() or not glyphs.is_ascii


@given(st.text(st.characters() | st.sampled_from("ab\\日…\x1b")), st.integers(0, 12), st.booleans())
def test_any_text_is_made_harmless_and_fits(text: str, width: int, right: bool) -> None:
    assert fit(sanitized(text), width, right=right) == fit_sanitized(text, width, right=right)


def test_what_is_cut_ends_with_an_ellipsis() -> None:
    assert "abc…" == fit("abcdef", 4)
    assert "日 …" == fit("日本語", 4)
    assert "  ab" == fit("ab", 4, right=True)


@GLYPHS
@given(name=st.text(), width=st.integers(1, 40))
def test_a_label_ends_with_a_blank_and_is_cut_before_it(
    glyphs: Glyphs, name: str, width: int
) -> None:
    shown = Pen(80, 24, glyphs).label(name, width).text

    assert width == cell_len(shown)
    assert shown.endswith(" ")
    assert Pen(80, 24, UNICODE).label("arrival delay mean", 10).text == "arrival … "


def text(line: Line) -> str:
    return "".join(segment.text for segment in line)


def test_phrases_are_on_as_many_lines_as_they_need() -> None:
    pen = Pen(20, 24, UNICODE)

    lines = pen.phrases(["Stable", "2 members", "lag 7", "unread 12", "\x1b[2J"])

    assert [" Stable  2 members", " lag 7  unread 12", " \\u001b[2J"] == [
        text(line) for line in lines
    ]
    assert [] == pen.phrases([])


def test_a_heading_has_an_aside_where_it_fits() -> None:
    assert "── Load ───── last 40 s ──" == text(Pen(26, 24, UNICODE).rule("Load", "last 40 s"))
    assert "── Load ─ last 40 s ──" == text(Pen(22, 24, UNICODE).rule("Load", "last 40 s"))
    assert "── Load ─────────────" == text(Pen(21, 24, UNICODE).rule("Load", "last 40 s"))


@pytest.mark.parametrize(
    ("fraction", "shown"),
    [(0, "░░░░"), (0.001, "█░░░"), (0.5, "██░░"), (1, "████"), (7, "████"), (-1, "░░░░")],
)
def test_a_bar_shows_a_share(fraction: float, shown: str) -> None:
    assert shown == bar(fraction, 4)


def test_shares_lose_no_cell_to_rounding() -> None:
    assert [4, 3, 3] == shares([1, 1, 1], 10)
    assert [0, 10] == shares([0.001, 1], 10)
    assert [0, 0] == shares([0, 0], 10)
    assert [] == shares([], 10)


@given(st.lists(st.floats(0, 1e9), max_size=8), st.integers(1, 60))
def test_shares_have_the_width_in_all(parts: list[float], width: int) -> None:
    found = shares(parts, width)

    assert (width if sum(parts) > 0 else 0) == sum(found)
    assert all(each >= 0 for each in found)


def test_a_heat_strip_is_denser_where_there_is_more() -> None:
    assert " ░▒█" == heat([0, 0.1, 5, 10], 10)
    assert " .:#" == heat([0, 0.1, 5, 10], 10, ASCII)
