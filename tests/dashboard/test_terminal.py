"""The dashboard in a terminal, beside a broker, as a user has both.

``python3 tests`` runs what shows that the terminal is given back, that every view is there, and
that keys and the mouse choose; ``python3 tests terminal`` runs the others, and those in
``terminal``, which look at each view.
"""

from __future__ import annotations

import json
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import failing_dashboard
from support.processes import SAME_TRIONET
from support.seen_dashboard import FOOT, assert_restored, start, status, wait_for_title
from support.terminal import PROMPT, Terminal, needs_tmux, terminal
from support.trionet_process import trionet_broker_process
from trionet.dashboard.views import VIEWS

pytestmark = [needs_tmux, pytest.mark.slow]


#: The colour of the keys at the bottom in each theme.
DARK, LIGHT = "38;2;255;180;84", "38;2;134;84;0"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """What tells a dashboard of a broker: its address, and that of its metrics."""
    log = tmp_path_factory.mktemp("broker") / "log"
    settings = {"metrics.listener": "http://127.0.0.1:0"}
    with trionet_broker_process(settings=settings, log=log) as (server, _):
        url = re.search(r"metrics are at (\S+)/metrics", log.read_text())
        assert url is not None
        yield [server, "--metrics", url[1]]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [(["C-c"], "130"), pytest.param(["q"], "0", marks=pytest.mark.terminal)],
)
def test_leaving_gives_the_terminal_back(
    screen: Terminal, broker: list[str], keys: list[str], expected: str
) -> None:
    modes = start(screen, broker)
    assert screen.has_alternate_screen()
    assert screen.reports_mouse()
    assert not screen.shows_cursor()

    screen.press(*keys)

    assert expected == status(screen)
    assert_restored(screen, modes)
    assert "Traceback" not in screen.text()


@pytest.mark.terminal
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_gives_the_terminal_back(
    screen: Terminal, broker: list[str], number: signal.Signals
) -> None:
    modes = start(screen, broker)

    screen.kill_program(number)

    assert str(128 + number) == status(screen)
    assert_restored(screen, modes)


def test_a_crash_gives_the_terminal_back_and_reports_why(
    screen: Terminal, broker: list[str]
) -> None:
    modes = screen.modes()
    screen.run([sys.executable, failing_dashboard.__file__, *broker, "--view", "overview"])
    screen.wait_for(FOOT)
    assert screen.reports_mouse()

    screen.press("+")  # the source fails when it is to look more often

    assert "1" == status(screen)
    assert "ValueError: a source that fails" in screen.history()
    assert "ExceptionGroup" not in screen.history()
    assert_restored(screen, modes)


def test_every_view_is_shown_by_its_key(screen: Terminal, broker: list[str]) -> None:
    start(screen, broker)

    for view in [each() for each in VIEWS]:
        screen.press(view.key)
        screen.wait_for(f" {view.title}", FOOT)
        screen.press("?")
        screen.wait_for(f"── {view.title} ──", "── Keys ──")
        leave_help(screen)
    for view in [each() for each in VIEWS]:
        screen.press("Tab")
        screen.wait_for(FOOT)
        screen.type(f":{view.name}")
        screen.press("Enter")
        screen.wait_for(f" {view.title}")


def leave_help(screen: Terminal) -> None:
    """What follows an escape at once would belong to it."""
    screen.press("Escape")
    screen.wait_until(lambda text: "── Keys ──" not in text, "the view again")


def test_rows_are_opened_filtered_and_sorted(screen: Terminal, broker: list[str]) -> None:
    start(screen, broker)

    screen.press("3")
    screen.wait_for("APIs", "DescribeCluster", "Metadata")
    screen.type("/descr !topic")
    screen.wait_until(lambda text: "Metadata" not in text, "the filtered table")
    screen.press("Enter")
    screen.wait_for("filter descr !topic")
    screen.press("Enter")
    screen.wait_for("APIs → Describe", "Phases", "total time")
    screen.press("Escape")
    screen.wait_for("WHERE THE TIME GOES")
    screen.press("Escape")
    screen.wait_for("Metadata")
    screen.type(":sort name asc")
    screen.press("Enter")
    screen.wait_for("by API ▲", "API▲")
    screen.press("r")
    screen.wait_for("by API ▼", "API▼")
    screen.press("s")
    screen.wait_for("by REQ/S ▼", "REQ/S▼")
    screen.type(":sort nothing")
    screen.press("Enter")
    screen.wait_for("! sort: usage: COLUMN [asc|desc]")
    screen.type(":nonsense")
    screen.press("Enter")
    screen.wait_for("! nonsense: unknown command")


@pytest.mark.terminal
def test_pausing_keeps_what_is_seen(screen: Terminal, broker: list[str]) -> None:
    start(screen, [*broker, "--refresh", "0.2"])

    screen.press("p")
    screen.wait_for("PAUSED")
    screen.press("3", "1")
    before = screen.wait_for("PAUSED", "Traffic")
    screen.press("j", "k")
    assert before == screen.wait_for("PAUSED", "Traffic")
    screen.press("p")
    screen.wait_for("live")


@pytest.mark.terminal
def test_it_is_suspended_and_goes_on(screen: Terminal, broker: list[str]) -> None:
    modes = start(screen, broker)

    for _ in range(2):
        screen.press("C-z")
        screen.wait_for_prompt()
        assert_restored(screen, modes)
        screen.run(["fg"])
        screen.wait_for(FOOT, "Overview")
        assert screen.has_alternate_screen()
        assert screen.reports_mouse()
    screen.press("2")
    screen.wait_for("Connections", "PEER")
    screen.press("q")
    assert "0" == status(screen)
    assert_restored(screen, modes)


@pytest.mark.terminal
def test_another_process_stops_it_and_lets_it_go_on(screen: Terminal, broker: list[str]) -> None:
    modes = start(screen, broker)

    screen.kill_program(signal.SIGSTOP)
    screen.wait_for("Stopped", PROMPT.strip())
    screen.run(["fg"])
    screen.wait_until(lambda text: "Stopped" not in text and FOOT in text, "a whole frame")
    screen.press("q")
    assert "0" == status(screen)
    assert_restored(screen, modes)


def test_the_mouse_chooses(screen: Terminal, broker: list[str]) -> None:
    start(screen, broker)

    assert screen.reports_mouse()
    screen.click(screen.screen()[1].index("3 apis"), 1)
    wait_for_title(screen, "APIs")
    row = next(n for n, line in enumerate(screen.screen()) if line.startswith(" API "))
    screen.click(2, row)
    screen.wait_for("by API ▲")
    screen.click(screen.screen()[-2].index("? help"), 39)
    screen.wait_for("── Keys ──", "shift and drag")
    leave_help(screen)
    screen.press("m")
    screen.wait_for("mouse off")
    assert not screen.reports_mouse()
    screen.press("m")
    screen.wait_for("mouse on")
    assert screen.reports_mouse()


@pytest.mark.terminal
def test_the_mouse_is_left_to_the_terminal(screen: Terminal, broker: list[str]) -> None:
    start(screen, [*broker, "--no-mouse"])

    assert not screen.reports_mouse()


@pytest.mark.terminal
@pytest.mark.parametrize(
    ("background", "arguments", "text"),
    [
        ("#fdf6e3", [], LIGHT),
        ("#1e1e2e", [], DARK),
        ("#fdf6e3", ["--theme", "dark"], DARK),
        ("#1e1e2e", ["--theme", "light"], LIGHT),
    ],
)
def test_colours_follow_the_background(
    broker: list[str], background: str, arguments: list[str], text: str
) -> None:
    with terminal(120, 40, {**SAME_TRIONET, "COLORTERM": "truecolor"}) as screen:
        screen.tmux("set-option", "-p", "window-style", f"bg={background}")
        start(screen, [*broker, *arguments])

        screen.wait_until(
            lambda _: text in screen.tmux("capture-pane", "-p", "-e"), f"the colour {text}"
        )

        screen.press("q")
        assert "0" == status(screen)
        # No reply of the terminal is left for the shell.
        assert "rgb" not in screen.history()


@pytest.mark.terminal
def test_what_is_seen_is_exported(screen: Terminal, broker: list[str], tmp_path: Path) -> None:
    start(screen, broker)
    screen.press("3")
    screen.wait_for("Metadata")

    for form in ("svg", "html", "txt", "json", "csv"):
        screen.type(f":export {tmp_path}/apis.{form}")
        screen.press("Enter")
        screen.wait_for(f"written to {tmp_path}/apis.{form}")
    screen.type(f":export {tmp_path}/apis.json")
    screen.press("Enter")
    screen.wait_for(f"written to {tmp_path}/apis-2.json")
    screen.type(":export /nowhere/at/all.svg")
    screen.press("Enter")
    screen.wait_for("! export: /nowhere/at/all.svg: No such file")

    apis = {row["name"] for row in json.loads((tmp_path / "apis.json").read_text())}
    assert {"Metadata", "ApiVersions"} <= apis
    assert "Metadata" in (tmp_path / "apis.txt").read_text()
    assert (tmp_path / "apis.svg").read_text().startswith("<svg")
    assert "name,rate" in (tmp_path / "apis.csv").read_text()


@pytest.mark.terminal
def test_a_connection_is_opened(screen: Terminal, broker: list[str]) -> None:
    start(screen, broker)

    screen.press("2")
    screen.wait_for("trionet-dashboard")
    screen.press("Enter")
    screen.wait_for("Connections →", "REQUEST", "LOCAL", "Metadata")
    screen.press("d")
    screen.wait_for("client id", "mute state")
    screen.press("Escape", "Escape")
    screen.wait_for("PEER")
    screen.press("K")
    screen.wait_for("Close the connection of 127.0.0.1", "[y/N]")
    screen.press("n")
    screen.wait_for("close: cancelled")
    screen.press("K", "y")
    # Without a token the listener only shows.
    screen.wait_for("! close: to close connections, run the dashboard in the broker's process")
