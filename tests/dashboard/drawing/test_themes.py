"""What the roles look like in every kind of terminal, and that they can be read."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from rich.color import Color, ColorSystem
from rich.segment import Segment
from rich.style import Style

from trionet.dashboard.drawing import _palette as palette
from trionet.dashboard.drawing._cells import Frame
from trionet.dashboard.drawing._themes import LOOKS, THEMES, Rgb, is_light, luminance, rgb, theme

#: Level AA of WCAG 2 for text.
CONTRAST_MIN = 4.5
#: The least for graphics, by which charts in the selected row can be read.
CHART_CONTRAST_MIN = 3.0
#: What is drawn, not read.
LINES = {palette.RULE, palette.CHARTS_ON_BAR[palette.RULE]}
CHARTS_ON_BAR = set(palette.CHARTS_ON_BAR.values())
#: The first 16 colours of xterm, and what it writes on where nothing else was chosen.
XTERM = [
    *("#000000", "#cd0000", "#00cd00", "#cdcd00", "#0000ee", "#cd00cd", "#00cdcd", "#e5e5e5"),
    *("#7f7f7f", "#ff0000", "#00ff00", "#ffff00", "#5c5cff", "#ff00ff", "#00ffff", "#ffffff"),
]
XTERM_BACKGROUND = {"dark": "#000000", "light": "#ffffff"}
EVERY_THEME = pytest.mark.parametrize("name", THEMES)


def roles() -> list[Style]:
    """All roles of the palette."""
    found = [*palette.TEXTS_ON_BAR.values(), *palette.CHARTS_ON_BAR.values()]
    for value in vars(palette).values():
        if isinstance(value, Style):
            found.append(value)
        elif isinstance(value, tuple):
            found += value
    return found


def contrast(one: Rgb, other: Rgb) -> float:
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def shade(color: Color, colors: ColorSystem) -> Rgb:
    """What a terminal with these colours shows."""
    shown = color.downgrade(colors)
    if colors is ColorSystem.STANDARD:
        assert shown.number is not None
        return rgb(XTERM[shown.number])
    return tuple(shown.get_truecolor())  # type: ignore[return-value] # it has three numbers


def pairs(name: str, colors: ColorSystem) -> Iterator[tuple[Style, Rgb, Rgb]]:
    """Each role that has a colour, with that of its text and each that may be behind it."""
    look = LOOKS[name]
    behind = look.backgrounds if colors is not ColorSystem.STANDARD else [XTERM_BACKGROUND[name]]
    for role in roles():
        style = theme(name, colors).style(role)
        if style.color is None or role in LINES:
            continue
        text = shade(style.color, colors)
        if style.bgcolor is not None:
            yield role, text, shade(style.bgcolor, colors)
        else:
            # What is reversed has the background's colour on its own, which is the same contrast.
            yield from ((role, text, rgb(each)) for each in behind)


@EVERY_THEME
@pytest.mark.parametrize("colors", list(ColorSystem)[:3], ids=lambda colors: colors.name)
def test_every_text_can_be_read(name: str, colors: ColorSystem) -> None:
    fine = {*palette.RAMP, *palette.LABELS, *(palette.CHARTS_ON_BAR[each] for each in palette.RAMP)}
    unused = fine if colors is not ColorSystem.TRUECOLOR else set()

    faint = {
        f"{text} on {behind}: {contrast(text, behind):.2f}"
        for role, text, behind in pairs(name, colors)
        if role not in unused
        and contrast(text, behind) < (CHART_CONTRAST_MIN if role in CHARTS_ON_BAR else CONTRAST_MIN)
    }

    assert not faint


@EVERY_THEME
def test_where_there_is_24_bit_colour_every_role_has_one(name: str) -> None:
    found = theme(name, ColorSystem.TRUECOLOR)

    uncoloured = [role for role in roles() if found.style(role).color is None]

    assert [palette.PLAIN, palette.BOLD] == uncoloured


def test_every_role_is_a_style_of_its_own() -> None:
    for one, other in itertools.combinations(roles(), 2):
        assert one != other


@EVERY_THEME
def test_without_colours_roles_are_what_attributes_make_them(name: str) -> None:
    assert all(theme(name, None).style(role) is role for role in roles())


def test_a_frame_has_roles_and_a_picture_styles() -> None:
    frame = Frame(
        2, [[Segment("a", palette.ALARM), Segment("b"), Segment("c", Style(italic=True))]]
    )

    [[alarm, plain, other]] = theme("light", ColorSystem.TRUECOLOR).applied(frame).lines

    assert Style(bold=True, color="#b02a00") == alarm.style
    assert plain.style is None
    assert Style(italic=True) == other.style


@pytest.mark.parametrize("name", THEMES)
def test_the_backgrounds_of_a_theme_are_told_from_those_of_the_other(name: str) -> None:
    assert {name == "light"} == {is_light(rgb(each)) for each in LOOKS[name].backgrounds}
