"""The tasks of the dashboard on a terminal that a test plays, without a program in between."""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import termios
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final, cast

import attrs
import pytest
import trio
import trio.testing

from trionet.dashboard import _app
from trionet.dashboard._app import Dashboard, DashboardSettings, write_new_file
from trionet.dashboard.model._model import Model
from trionet.dashboard.model._rows import ConnectionRow
from trionet.dashboard.sources._actions import Actions
from trionet.dashboard.sources._source import Started
from trionet.dashboard.terminal import _tty
from trionet.dashboard.terminal._tty import Tty
from trionet.dashboard.ui._view_state import ROWS_PER_STEP
from trionet.dashboard.views import all_views

HANGUP = 128 + signal.SIGHUP
#: More than a terminal that nobody reads takes.
MANY_CHANGES = 300


class Silent:
    """A source that has nothing to report."""

    def __init__(self) -> None:
        self.name = "played"
        self.interval_seconds = 1.0
        self.actions = cast(Actions, None)
        self.wanted: list[str | None] = []

    def focus(self, section: str | None, key: object = None) -> None:
        self.wanted.append(section)

    async def run(self, model: Model, *, task_status: Started = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        await self.tell(model)
        await trio.sleep_forever()

    async def tell(self, model: Model) -> None:
        """Feed the model, then return or go on for good."""
        await trio.lowlevel.checkpoint()


class Ticking(Silent):
    """A source that has nothing to tell but that it looked."""

    def __init__(self, pause_seconds: float = 0.001) -> None:
        super().__init__()
        self.looked = 0
        self.has_looked = trio.Event()
        self._pause_seconds = pause_seconds

    async def tell(self, model: Model) -> None:
        while True:
            # Each frame is another one, and large.
            model.set_alarm("look", f"{self.looked} " * 40)
            model.changed()
            self.looked += 1
            if self.looked == MANY_CHANGES:
                self.has_looked.set()
            await trio.sleep(self._pause_seconds)


class Screen:
    """The other end of a terminal."""

    def __init__(self, master: int, path: str) -> None:
        self.master = master
        self.path = path
        self.seen = b""

    def press(self, keys: bytes) -> None:
        os.write(self.master, keys)

    async def read_until(self, text: bytes) -> None:
        await trio.lowlevel.checkpoint()
        while text not in self.seen:
            await trio.lowlevel.wait_readable(self.master)
            self.seen += os.read(self.master, 65536)

    def read_rest(self) -> bytes:
        os.set_blocking(self.master, False)
        try:
            while data := os.read(self.master, 65536):
                self.seen += data
        except (BlockingIOError, OSError):
            pass
        return self.seen


@contextmanager
def screen(columns: int = 200, lines: int = 60) -> Iterator[Screen]:
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    try:
        yield Screen(master, os.ttyname(slave))
    finally:
        os.close(slave)
        os.close(master)


@asynccontextmanager
async def dashboard(screen: Screen, source: Silent) -> AsyncIterator[tuple[Dashboard, list[int]]]:
    """A dashboard that runs; its exit status is in the list when it has ended."""
    tty = Tty(screen.path)
    found = Dashboard(source, DashboardSettings(ascii=False), tty, all_views())
    status: list[int] = []

    async def run(*, task_status: trio.TaskStatus[None]) -> None:
        task_status.started()
        status.append(await found.run())

    try:
        async with trio.open_nursery() as nursery:
            await nursery.start(run)
            yield found, status
    finally:
        tty.close()


async def play(source: Silent, *steps: tuple[bytes, bytes]) -> None:
    """Press keys as soon as each text is on the screen, until the dashboard has ended well."""
    with screen() as played:
        async with dashboard(played, source) as (_, status):
            for text, keys in steps:
                await played.read_until(text)
                played.press(keys)

        assert [0] == status


async def test_a_terminal_without_a_reader_holds_up_nothing() -> None:
    source = Ticking()
    with screen() as played:
        async with dashboard(played, source) as (_, status):
            await source.has_looked.wait()  # while no byte was read
            played.press(b"q")

        assert [0] == status


async def test_it_goes_on_when_it_is_read_again() -> None:
    source = Ticking()
    with screen() as played:
        async with dashboard(played, source) as (_, status):
            await source.has_looked.wait()
            await played.read_until(b"Overview")
            played.press(b"2")
            await played.read_until(b"Connections")
            played.press(b"q")

        assert [0] == status
        assert played.read_rest().endswith(b"\x1b[?1049l")


async def test_the_line_of_the_terminal_is_as_before() -> None:
    with screen() as played:
        fd = os.open(played.path, os.O_RDWR | os.O_NOCTTY)
        before = termios.tcgetattr(fd)
        async with dashboard(played, Ticking(0.1)):
            await played.read_until(b"Overview")
            assert before != termios.tcgetattr(fd)
            played.press(b"q")

        assert before == termios.tcgetattr(fd)
        os.close(fd)


async def test_keys_have_an_effect_although_the_source_never_reports() -> None:
    await play(
        Silent(),
        (b"Overview", b"2"),
        (b"Connections", b"q"),
    )


async def test_the_source_begins_when_the_first_frame_is_out() -> None:
    """What it loads would have the screen stay empty for longer."""

    class Loading(Silent):
        def __init__(self) -> None:
            super().__init__()
            self.seen: bytes | None = None
            self.has_begun = trio.Event()

        async def tell(self, model: Model) -> None:
            self.seen = played.read_rest()
            self.has_begun.set()
            await trio.lowlevel.checkpoint()

    source = Loading()
    with screen(80, 24) as played:  # a terminal takes such a frame at once
        async with dashboard(played, source):
            await source.has_begun.wait()
            os.write(played.master, b"q")

    assert source.seen is not None
    assert b"quit" in source.seen


def row(client_id: str) -> ConnectionRow:
    values: dict[str, Any] = {each.name: 0 for each in attrs.fields(ConnectionRow)}
    values |= {"client_id": client_id, "peer": "", "software": "", "software_version": ""}
    texts = ("principal", "listener", "phase", "request", "protocol", "id")
    return ConnectionRow(**{**values, **dict.fromkeys(texts, "")})


async def test_a_filter_over_many_rows_does_not_hold_up_what_is_typed() -> None:
    """Each key is echoed, and the rows that are left come a little later."""

    class Crowded(Silent):
        async def tell(self, model: Model) -> None:
            rows = {number: row(f"client-{number}") for number in range(5 * ROWS_PER_STEP)}
            model.connections.replace(rows, 1.0)
            model.changed()
            await trio.lowlevel.checkpoint()

    with screen() as played:
        async with dashboard(played, Crowded()):
            played.press(b"2")
            await played.read_until(b"client-0")
            played.press(b"/client-7")
            await played.read_until(b"client-7")
            await played.read_until(f"111 of {5 * ROWS_PER_STEP:,}".encode())
            played.press(b"\r")
            played.press(b"q")


async def test_a_terminal_that_is_gone_ends_it() -> None:
    with screen() as played:
        async with dashboard(played, Ticking(0.1)) as (_, status):
            await played.read_until(b"Overview")
            os.close(played.master)
            played.master = os.open(os.devnull, os.O_RDONLY)

        assert [HANGUP] == status


async def test_cancelling_gives_the_screen_back() -> None:
    with screen(80, 24) as played:
        with trio.CancelScope() as scope:
            async with dashboard(played, Silent()):
                await played.read_until(b"quit")
                scope.cancel()

        assert scope.cancelled_caught
        assert played.read_rest().endswith(b"\x1b[?1049l")


async def test_the_source_learns_what_is_looked_at_and_how_often() -> None:
    source = Ticking(0.05)
    with screen() as played:
        async with dashboard(played, source) as (found, _):
            await played.read_until(b"Overview")
            played.press(b"2")
            await played.read_until(b"Connections")
            played.press(b"+")
            await played.read_until(b"refresh every 0.5 s")
            played.press(b"q")

        assert ["overview", "connections"] == [each for each in source.wanted if each]
        assert 0.5 == source.interval_seconds
        assert 0.5 == found._ui.refresh_seconds


class Wrong(Silent):
    """A source whose connections are none."""

    async def tell(self, model: Model) -> None:
        await trio.lowlevel.checkpoint()
        model.connections.replace({0: cast(ConnectionRow, None)}, 0.0)
        model.changed()


async def test_a_view_that_fails_leaves_the_others_alone(caplog: pytest.LogCaptureFixture) -> None:
    await play(
        Wrong(),
        (b"Overview", b"2"),
        (b"The view connections failed; see the log.", b"j3"),
        (b"APIs", b"q"),
    )
    assert ["view connections failed"] == [each.message for each in caplog.records]


async def test_a_view_that_fails_hides_no_message() -> None:
    await play(
        Wrong(),
        (b"Overview", b"2"),
        (b"The view connections failed; see the log.", b":nonsense\r"),
        (b"! nonsense: unknown command", b"q"),
    )


class WrongAtTheEnd(Silent):
    """A source whose connections are all right, but for the last one."""

    async def tell(self, model: Model) -> None:
        await trio.lowlevel.checkpoint()
        rows = {number: row(f"client-{number}") for number in range(ROWS_PER_STEP)}
        model.connections.replace({**rows, -1: cast(ConnectionRow, None)}, 0.0)
        model.changed()


async def test_a_view_that_fails_while_it_filters_leaves_the_others_alone() -> None:
    await play(
        WrongAtTheEnd(),
        (b"Overview", b"2"),
        (b"client-0", b"/client"),
        (b"The view connections failed; see the log.", b"\r3"),
        (b"APIs", b"q"),
    )


async def test_an_export_of_a_view_that_fails_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await play(
        WrongAtTheEnd(),
        (b"Overview", b"2"),
        (b"client-0", f":export {tmp_path}/rows.csv\r".encode()),
        (b"export: the view connections failed", b"q"),
    )
    assert not os.listdir(tmp_path)
    assert ["view connections failed"] == [each.message for each in caplog.records]


def test_a_file_that_is_there_already_stays(tmp_path: Path) -> None:
    names = [write_new_file(tmp_path / "frame.svg", str(number)).name for number in range(3)]

    assert ["frame.svg", "frame-2.svg", "frame-3.svg"] == names
    assert ["0", "1", "2"] == [(tmp_path / name).read_text() for name in names]


def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(NotADirectoryError):
        write_new_file(tmp_path / "file" / "frame.svg", "")


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")


WHITE: Final = b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\"
ATTRIBUTES: Final = b"\x1b[?1;2c"
#: The colour of keys at the bottom on a light background.
LIGHT_KEYS: Final = b"38;2;134;84;0m"


@pytest.fixture
def _colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLORTERM", "truecolor")


@pytest.mark.usefixtures("_colours")
async def test_the_first_frame_does_not_wait_for_the_background_but_colours_follow_it() -> None:
    await play(
        Silent(),
        (b"quit", WHITE + ATTRIBUTES),
        (LIGHT_KEYS, b":theme dark\r"),
        (b"38;2;255;180;84m", b"q"),
    )


@pytest.mark.usefixtures("_colours")
async def test_a_reply_that_is_late_is_not_left_for_the_shell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_tty, "REPLIES_SECONDS", 30.0)
    monkeypatch.setattr(_app, "LEAVE_SECONDS", 30.0)
    with screen() as played:
        async with dashboard(played, Silent()) as (_, status):
            await played.read_until(b"quit")
            played.press(b"q")
            await trio.testing.wait_all_tasks_blocked()
            played.press(WHITE)
            played.press(ATTRIBUTES)

        assert [0] == status
        fd = os.open(played.path, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)
        with pytest.raises(BlockingIOError):
            os.read(fd, 1)
        os.close(fd)


async def test_without_colours_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    with screen() as played:
        async with dashboard(played, Silent()):
            await played.read_until(b"quit")
            played.press(b"q")

        assert b"\x1b]11" not in played.read_rest()
        assert b"\x1b[?1000h" in played.seen
        assert b"\x1b[?1000l" in played.seen
