"""The progress bar on a terminal."""

from __future__ import annotations

import io

import pytest
import trio

from trionet.cli.terminal._progress import QUICK_SECONDS, Progress, run_showing
from trionet.cli.terminal._signals import Stop


class TerminalText(io.StringIO):
    """What a terminal is sent."""

    def isatty(self) -> bool:
        return True


async def test_the_cursor_stays_visible_beside_a_bar_which_ctrl_z_may_stop_at_any_time(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.abc.Clock
) -> None:
    shown = TerminalText()
    monkeypatch.setattr("sys.stderr", shown)
    monkeypatch.setenv("TERM", "xterm")
    progress = Progress(records=3, records_total=10)

    async def run() -> None:
        await trio.sleep(2 * QUICK_SECONDS)

    await run_showing(run, Stop(), progress, pytest.fail, is_bar=True)

    assert "3 records" in shown.getvalue()
    assert "\x1b[?25l" not in shown.getvalue()
