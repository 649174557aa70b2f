"""What the terminal can show."""

from __future__ import annotations

import pytest
from rich.console import Console

from trionet.dashboard.tty import color_system

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


def test_it_has_none_where_nobody_wants_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    assert color_system() is None
