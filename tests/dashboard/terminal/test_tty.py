"""What the terminal can show, and whose keys it reports."""

from __future__ import annotations

import os

import pytest
import trio
import trio.testing
from rich.console import Console

from trionet.dashboard.terminal._capabilities import color_system
from trionet.dashboard.terminal._tty import Tty

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
