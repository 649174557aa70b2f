"""What the terminal can show, whose keys it reports, and that no log line is written to it."""

from __future__ import annotations

import io
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import trio
import trio.testing
from rich.color import ColorSystem
from rich.console import Console

from trionet.dashboard.drawing._cells import ASCII, FINE, UNICODE, Glyphs
from trionet.dashboard.drawing._themes import DARK, LIGHT
from trionet.dashboard.terminal._ansi import color_system, presumed_theme, terminal_glyphs
from trionet.dashboard.terminal._tty import ERRORS_MAX, Tty, hold_terminal_logging

TERMS = ("xterm", "xterm-256color", "XTERM-256COLOR", "xterm-kitty", "screen-16color", "tmux", "")


@pytest.mark.parametrize("colorterm", ["", "truecolor", " 24Bit ", "yes"])
@pytest.mark.parametrize("term", TERMS)
def test_it_has_as_many_colours_as_rich_would_say(
    term: str, colorterm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", term)
    monkeypatch.setenv("COLORTERM", colorterm)
    names = {1: "standard", 2: "256", 3: "truecolor"}
    found = color_system()
    assert found is not None

    assert Console(force_terminal=True, legacy_windows=False).color_system == names[found]


def test_it_has_none_where_they_are_not_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    assert color_system() is None


@pytest.mark.parametrize(
    ("colors", "locale", "glyphs"),
    [
        (ColorSystem.TRUECOLOR, "C.UTF-8", FINE),
        (ColorSystem.EIGHT_BIT, "C.UTF-8", UNICODE),
        (None, "C.UTF-8", UNICODE),
        (ColorSystem.TRUECOLOR, "C", ASCII),
    ],
)
def test_charts_are_fine_where_colours_and_characters_are(
    colors: ColorSystem | None, locale: str, glyphs: Glyphs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", locale)

    assert glyphs is terminal_glyphs(colors)
    assert ASCII is terminal_glyphs(colors, is_ascii=True)


@pytest.mark.parametrize(
    ("value", "theme"),
    [("15;0", DARK), ("0;15", LIGHT), ("0;default;7", LIGHT), ("7;8", DARK), ("", DARK)],
)
def test_until_the_background_is_known_a_variable_may_name_it(
    value: str, theme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLORFGBG", value)

    assert theme == presumed_theme()


async def test_keys_come_again_after_it_was_suspended_behind_a_shell() -> None:
    master, slave = os.openpty()
    tty = Tty(os.ttyname(slave))
    found = b""

    async def read() -> None:
        nonlocal found
        found = await tty.read()

    try:
        tty.enter()
        await tty.leave()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            await trio.testing.wait_all_tasks_blocked()
            await tty.leave()
            tty.enter()
            os.write(master, b"q")
    finally:
        tty.close()
        os.close(slave)
        os.close(master)

    assert b"q" == found


async def test_a_terminal_that_never_replies_is_left_while_keys_are_read(
    autojump_clock: trio.testing.MockClock,
) -> None:
    master, slave = os.openpty()
    tty = Tty(os.ttyname(slave))
    try:
        tty.enter()
        tty.use_mouse(True)
        tty.ask()
        await tty.send(b"a frame")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(tty.read)
            await trio.testing.wait_all_tasks_blocked()
            os.read(master, 1000)

            await tty.leave()

            nursery.cancel_scope.cancel()
        left = os.read(master, 1000)
    finally:
        tty.close()
        os.close(slave)
        os.close(master)

    assert b"\x1b[?1000l" in left
    assert left.endswith(b"\x1b[?1049l")


logger = logging.getLogger("trionet.client")


class _Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@contextmanager
def handlers(*streams: io.StringIO) -> Iterator[None]:
    """The root logger writes to these, and nowhere else."""
    root = logging.getLogger()
    before = root.handlers[:]
    root.handlers[:] = [logging.StreamHandler(stream) for stream in streams]
    try:
        yield
        assert {*streams} == {getattr(handler, "stream", None) for handler in root.handlers}
    finally:
        root.handlers[:] = before


def test_errors_are_reported_when_the_screen_is_free_again() -> None:
    screen, file = _Screen(), io.StringIO()
    with handlers(screen, file):
        with hold_terminal_logging():
            logger.warning("no broker")
            logger.error("a fault")
            assert "" == screen.getvalue()
            assert "no broker\na fault\n" == file.getvalue()
        logger.warning("later")

    assert "a fault\nlater\n" == screen.getvalue()
    assert "no broker\na fault\nlater\n" == file.getvalue()


def test_handlers_of_the_package_are_held_as_well() -> None:
    screen, package = _Screen(), logging.getLogger("trionet")
    handler = logging.StreamHandler(screen)
    package.addHandler(handler)
    try:
        with hold_terminal_logging():
            logger.error("a fault")
            assert "" == screen.getvalue()
        assert handler in package.handlers
    finally:
        package.removeHandler(handler)

    assert "a fault\n" == screen.getvalue()


def test_python_has_no_last_resort_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = _Screen()
    monkeypatch.setattr("sys.stderr", screen)
    with handlers(), hold_terminal_logging():
        logger.warning("no broker")
        for number in range(ERRORS_MAX + 1):
            logger.error("fault %d", number)
        assert "" == screen.getvalue()

    assert [f"fault {n}" for n in range(1, ERRORS_MAX + 1)] == screen.getvalue().splitlines()
