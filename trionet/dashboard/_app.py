"""The running dashboard: the tasks that drive the user interface.

The problem: keys must be handled immediately even if a broker is slow, a list has 10,000 rows, or
the terminal has stopped reading (Ctrl-S, a stuck ssh). Whether the program ends by a key, a signal
or an error, or is suspended by Ctrl-Z, the shell must get back its screen and keyboard.

The choice: one task reads keys, one draws, one handles signals, one runs the sources, and each
action runs in a separate task. The tasks share the model and the state of the user interface
without locks, because they run in one loop. Changes trigger drawing; no timer does. Changes are
coalesced for a sixtieth of a second, unless a key is pressed. After a slow frame, drawing rests, so
that it takes at most a tenth of the loop's time.

Rejected: a frame timer (wakes an idle program 60 times a second) and writing frames in a thread (a
terminal that stopped reading would block the exit). Reconsider if frames become expensive. The work
per frame is bounded by the screen size, not by the model size.
"""

from __future__ import annotations

import errno
import math
import os
import signal
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Final

import attrs
import trio

from .._util._logging import get_logger
from .._util._raising import raise_single_error
from ..errors import TrionetError
from .drawing._cells import PICTURE, Frame, Glyphs
from .drawing._export import FRAME_FORMS, TABLE_FORMS
from .drawing._themes import DARK, LIGHT, is_light
from .model._model import Model
from .terminal._ansi import Painter, color_system, presumed_theme, terminal_glyphs
from .terminal._keys import Attributes, Background, KeyDecoder, Reply
from .terminal._tty import LEAVE_SECONDS, TerminalGoneError, Tty, hold_terminal_logging
from .ui._key_handler import KeyHandler
from .ui._screen import STALE_SECONDS, draw, failed_frame
from .ui._ui import Ui
from .ui._view import Act, Effect, Export, Quit, Redraw, UseMouse, UseTheme, View
from .views import all_views

if TYPE_CHECKING:
    from .sources._source import Source

logger = get_logger("trionet.dashboard")

#: How long changes of the model are coalesced into one frame, unless a key is pressed.
COALESCE_SECONDS: Final = 1 / 60
#: The maximum share of the loop's time that drawing takes.
DRAWING_SHARE: Final = 0.1
#: The interval at which to check whether the header must show that data is stale.
STALE_CHECK_SECONDS: Final = 1.0
#: The number of refresh intervals without a change after which data is stale.
STALE_INTERVALS: Final = 3
#: The number that an export adds to make a file name unique is below this.
FILES_MAX: Final = 1000

_STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_HANDLED_SIGNALS: Final = (*_STOP_SIGNALS, signal.SIGTSTP, signal.SIGCONT, signal.SIGWINCH)


@attrs.frozen
class DashboardSettings:
    """The initial appearance and view of the dashboard.

    Attributes:
        view: the name of the first view.
        refresh_seconds: the initial refresh interval.
        color: whether to use colours; None to decide by NO_COLOR.
        ascii: whether to show only ASCII; None to decide by the locale.
        mouse: whether mouse reports are initially on.
        theme: the name of the theme; None to choose by the terminal's background.
    """

    view: str = "overview"
    refresh_seconds: float = 1.0
    color: bool | None = None
    ascii: bool | None = None
    mouse: bool = True
    theme: str | None = None


async def run_dashboard(
    source: Source, settings: DashboardSettings | None = None, views: Sequence[View] | None = None
) -> int:
    """Show a source on the terminal that standard output refers to, until the user quits.

    The screen is restored in all cases: after a key, a signal, an error or cancellation.

    Args:
        source: the source to show.
        settings: the initial view and appearance; None for the defaults.
        views: the views with tabs, in order; None for all.

    Returns:
        The exit status: 0, or 128 + N if signal N ended the dashboard.

    Raises:
        OSError: the terminal cannot be used.
    """
    tty = Tty()
    try:
        with raise_single_error(), hold_terminal_logging():
            return await Dashboard(
                source,
                settings or DashboardSettings(),
                tty,
                all_views() if views is None else views,
            ).run()
    finally:
        tty.close()


class Dashboard:
    """One run of the dashboard.

    Args:
        source: the source to show.
        settings: the initial view and appearance.
        tty: the terminal; the caller closes it.
        views: the views with tabs.
    """

    def __init__(
        self, source: Source, settings: DashboardSettings, tty: Tty, views: Sequence[View]
    ) -> None:
        self._source = source
        self._tty = tty
        self._model = Model()
        self._model.changed = self._changed
        # The first frame is drawn before the source runs, and shows its name.
        self._model.about = attrs.evolve(self._model.about, source=source.name)
        self._ui = Ui(views, settings.view, settings.refresh_seconds)
        self._keys = KeyHandler(self._ui)
        self._ui.uses_mouse = settings.mouse
        tty.use_mouse(settings.mouse)
        colors = None if settings.color is False else color_system()
        self._glyphs = terminal_glyphs(colors, is_ascii=settings.ascii)
        encoding = "ascii" if self._glyphs.is_ascii else "utf-8"
        self._painter = Painter(colors, encoding, settings.theme or presumed_theme())
        self._follows_background = False
        if settings.theme is None and colors is not None:  # without, both themes are the same
            self._follow_background()
        self._size = (0, 0)
        self._status = 0
        self._dirty = trio.Event()
        self._urgent = trio.Event()
        self._sending = trio.CancelScope()
        self._updated_at = 0.0
        self._focus: tuple[str | None, object] = (None, None)
        self._failed: set[str] = set()
        self._has_drawn = trio.Event()

    async def run(self) -> int:
        """Run until the user quits, and return the exit status; see :func:`run_dashboard`."""
        self._updated_at = trio.current_time()
        self._follow_ui()
        try:
            # Before entering the screen, so that no signal can kill the process in between.
            with trio.open_signal_receiver(*_HANDLED_SIGNALS) as signals:
                async with trio.open_nursery() as nursery:
                    self._tty.enter()
                    self._redraw_now()  # the first frame waits for no data
                    nursery.start_soon(self._handle_signals, signals, nursery)
                    nursery.start_soon(self._read_keys, nursery)
                    nursery.start_soon(self._draw)
                    nursery.start_soon(self._watch_staleness)
                    nursery.start_soon(self._feed)
        except* TerminalGoneError:
            self._status = 128 + signal.SIGHUP
        finally:
            with trio.move_on_after(LEAVE_SECONDS, shield=True):
                await self._tty.leave()
        return self._status

    async def _feed(self) -> None:
        """Run the source after the first frame, because loading the source would delay it."""
        await self._has_drawn.wait()
        await self._source.run(self._model)

    def _stop(self, status: int, nursery: trio.Nursery) -> None:
        self._status = status
        nursery.cancel_scope.cancel(reason="the dashboard is closing")

    def _changed(self) -> None:
        self._updated_at = trio.current_time()
        self._dirty.set()

    def _redraw_now(self) -> None:
        """Request a frame without waiting for further changes."""
        self._dirty.set()
        self._urgent.set()

    # Signals.

    async def _handle_signals(self, signals: AsyncIterator[int], nursery: trio.Nursery) -> None:
        """Stop, suspend, resume or redraw on signals."""
        async for number in signals:
            if number in _STOP_SIGNALS:
                self._stop(128 + number, nursery)
            elif number == signal.SIGTSTP:
                await self._suspend()
            else:
                if number == signal.SIGCONT:
                    nursery.start_soon(self._resume)
                self._painter.forget()
                self._redraw_now()

    async def _suspend(self) -> None:
        """Restore the screen, and stop the process until SIGCONT."""
        self._sending.cancel(reason="the dashboard is being suspended")
        with trio.move_on_after(LEAVE_SECONDS, shield=True):
            await self._tty.leave()
        os.kill(os.getpid(), signal.SIGSTOP)

    async def _resume(self) -> None:
        await self._tty.resume()
        self._painter.forget()
        self._redraw_now()

    # Keys.

    async def _read_keys(self, nursery: trio.Nursery) -> None:
        decoder = KeyDecoder()
        while True:
            seconds = decoder.wait_seconds
            data: bytes | None = None
            with trio.move_on_after(math.inf if seconds is None else seconds):
                data = await self._tty.read()
            for event in decoder.flush() if data is None else decoder.feed(data):
                if isinstance(event, Background | Attributes):
                    self._take_reply(event)
                    continue
                effect = self._keys.press(event, self._model)
                if effect is not None:
                    self._carry_out(effect, nursery)
            self._follow_ui()
            self._redraw_now()

    def _take_reply(self, reply: Reply) -> None:
        """Follow the terminal's background, which it reports after the first frame."""
        if isinstance(reply, Attributes):
            self._tty.replied()
        elif self._follows_background:
            self._painter.use_theme(LIGHT if is_light(reply.color) else DARK)

    def _follow_background(self) -> None:
        self._follows_background = True
        if os.environ.get("TERM") != "linux":  # the console, which does not know the question
            self._tty.ask()

    def _use_theme(self, name: str | None) -> None:
        if name is None:
            self._follow_background()
        else:
            self._follows_background = False
            self._painter.use_theme(name)

    def _carry_out(self, effect: Effect, nursery: trio.Nursery) -> None:
        match effect:
            case Quit():
                self._stop(0, nursery)
            case Redraw():
                self._painter.forget()
            case UseMouse(on):
                self._tty.use_mouse(on)
            case UseTheme(name):
                self._use_theme(name)
            case Export(path):
                nursery.start_soon(self._export, path)
            case Act():
                nursery.start_soon(self._act, effect)

    def _follow_ui(self) -> None:
        """Pass the current view and refresh interval to the source."""
        self._source.interval_seconds = self._ui.refresh_seconds
        view = self._ui.current.view
        focus = (view.section, view.section_key)
        if focus != self._focus:
            self._focus = focus
            self._source.focus(*focus)

    async def _act(self, act: Act) -> None:
        await trio.lowlevel.checkpoint()
        label = act.action.label
        self._ui.show_message(f"{label}{self._glyphs.ellipsis}")
        try:
            done = await act.action.run(self._source, act.row, act.answers)
        except (TrionetError, OSError, ValueError) as error:
            self._ui.show_message(f"{label}: {error}", is_alarm=True)
        else:
            self._ui.show_message(done)
        self._redraw_now()

    async def _export(self, path: str) -> None:
        await trio.lowlevel.checkpoint()
        form = path.rpartition(".")[2].lower()
        is_alarm = True
        try:
            text = await self._exported(form)
            if text is None:
                message = f"export: .{form} requires a table, but this view has none"
            else:
                written = await trio.to_thread.run_sync(write_new_file, Path(path), text)
                message = f"written to {written}"
                is_alarm = False
        except OSError as error:
            message = f"export: {path}: {error.strerror}"
        except Exception as error:  # boundary: one view
            message = f"export: the view {self._log_failure(error)} failed; see the log"
        self._ui.show_message(message, is_alarm=is_alarm)
        self._redraw_now()

    async def _exported(self, form: str) -> str | None:
        """Export the current frame or all rows of the table.

        Returns None if the form requires a table and the view has none.
        """
        await trio.lowlevel.checkpoint()
        place = self._ui.current
        place.update(self._model, is_paused=self._ui.is_paused)
        while place.is_updating:
            place.step()
            await trio.lowlevel.checkpoint()
        if form in FRAME_FORMS:
            glyphs = PICTURE if self._glyphs.has_dots else self._glyphs
            return FRAME_FORMS[form](self._frame(glyphs), self._painter.theme)
        return None if place.table is None else TABLE_FORMS[form](place.table, place.rows)

    # Drawing.

    async def _draw(self) -> None:
        """Draw after every change. A terminal that reads slowly gets fewer frames."""
        seconds = COALESCE_SECONDS
        while True:
            await self._dirty.wait()
            with trio.move_on_after(seconds):
                await self._urgent.wait()
            is_urgent = self._urgent.is_set()
            self._dirty, self._urgent = trio.Event(), trio.Event()
            seconds = await self._show()
            if self._ui.current.is_updating and await self._finish_update(is_urgent=is_urgent):
                seconds = await self._show()

    async def _show(self) -> float:
        """Draw a frame, and return how long to wait before the next one, in seconds."""
        if not self._tty.is_entered:
            await trio.lowlevel.checkpoint()
            return COALESCE_SECONDS  # suspended; resuming requests a frame
        began = perf_counter()
        data = self._painter.paint(self._frame(self._glyphs).lines)
        rest = _rest(began, DRAWING_SHARE)
        self._has_drawn.set()
        with trio.CancelScope() as self._sending:
            await self._tty.send(data)
        return max(COALESCE_SECONDS, rest)

    async def _finish_update(self, *, is_urgent: bool) -> bool:
        """Finish filtering the rows in small steps.

        Args:
            is_urgent: whether the user is waiting; otherwise the task rests between steps.

        Returns:
            False if a key interrupted the update, otherwise True.
        """
        place = self._ui.current
        await trio.lowlevel.checkpoint()
        while place.is_updating:
            if self._urgent.is_set():
                return False
            began = perf_counter()
            try:
                place.step()
            except Exception:  # boundary: one view, which fails again when it is drawn
                return True
            await trio.sleep(0 if is_urgent else _rest(began, DRAWING_SHARE))
        return True

    def _frame(self, glyphs: Glyphs) -> Frame:
        size = self._tty.size()
        if size != self._size:
            self._size = size
            self._painter.forget()
        stale = trio.current_time() - self._updated_at
        if stale < STALE_INTERVALS * self._ui.refresh_seconds:
            stale = 0.0
        try:
            return draw(self._ui, self._model, *size, glyphs, stale, trio.current_time())
        except Exception as error:  # boundary: one view
            name = self._log_failure(error)
            return failed_frame(self._ui, self._model, name, *size, glyphs)

    def _log_failure(self, error: Exception) -> str:
        """Log the current view's failure if it is the first, and return the view's name."""
        name = self._ui.current.view.name
        if name not in self._failed:
            self._failed.add(name)
            logger.error("view %s failed", name, exc_info=error)
        return name

    async def _watch_staleness(self) -> None:
        """Redraw the header while data is stale, so that the displayed age grows."""
        while True:
            await trio.sleep(STALE_CHECK_SECONDS)
            if self._model.failing or trio.current_time() - self._updated_at > STALE_SECONDS:
                self._dirty.set()


def _rest(began: float, share: float) -> float:
    """Return how long to rest, in seconds, so that work takes only ``share`` of the time.

    Args:
        began: the value of ``perf_counter`` when the work started.
        share: the share of the time for work, 0 to 1.
    """
    spent = perf_counter() - began
    return spent / share - spent


def write_new_file(path: Path, text: str) -> Path:
    """Write a new file, adding a number to its name if the file exists, and return its path.

    Raises:
        OSError: the file cannot be written.
    """
    for number in range(1, FILES_MAX):
        numbered = path if number == 1 else path.with_stem(f"{path.stem}-{number}")
        try:
            with numbered.open("x", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
        except FileExistsError:
            continue
        return numbered
    raise FileExistsError(errno.EEXIST, "too many files with that name", str(path))
