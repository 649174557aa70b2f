"""The progress of a command: a bar on a terminal, lines with ``--progress``, and a final line."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

import attrs
import trio

from trionet._util._raising import raise_single_error
from trionet._util._text import counted

from ._signals import SIGNALS, Stop, watch_signals

#: The refresh intervals of the bar and of progress lines.
BAR_SECONDS: Final = 0.1
LINE_SECONDS: Final = 1.0
#: The delay before the bar appears. A command that finishes sooner shows no bar.
QUICK_SECONDS: Final = 0.5
_UNITS: Final = ("B", "kB", "MB", "GB", "TB")


@attrs.define
class Progress:
    """The counts of a running command.

    Attributes:
        records: the number of records processed.
        size: the number of bytes processed.
        records_total: the expected number of records; None if unknown.
        note: the text at the end of the line.
    """

    records: int = 0
    size: int = 0
    records_total: int | None = None
    note: str = ""
    _start: float = 0.0

    def begin(self) -> None:
        """Record the start time."""
        self._start = trio.current_time()

    def line(self) -> str:
        """Format the counts and the rate as a line."""
        seconds = trio.current_time() - self._start
        records = counted(self.records, "record")
        rate = self.records / seconds if seconds > 0 else 0.0
        text = f"{records}, {sized(self.size)} in {seconds:.1f} s, {rate:,.0f}/s"
        return f"{text}, {self.note}" if self.note else text


def sized(size: float) -> str:
    """Format a number of bytes with a decimal unit, such as ``1.5 MB``."""
    for unit in _UNITS[:-1]:
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} {_UNITS[-1]}"


async def run_showing(
    run: Callable[[], Awaitable[None]],
    stop: Stop,
    progress: Progress,
    report: Callable[[str], None],
    *,
    is_bar: bool | None,
) -> None:
    """Run a command, showing its progress, until it has finished or a second signal cancels it.

    Args:
        run: the command, which finishes early after ``stop`` is requested.
        stop: requested by the first signal.
        progress: the counts, which the command updates.
        report: prints a line; used if there is no bar.
        is_bar: whether to show a bar (True) or lines (False); None for neither.
    """
    progress.begin()
    with raise_single_error(), trio.open_signal_receiver(*SIGNALS) as signals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch_signals, signals, stop, nursery.cancel_scope)
            if is_bar is not None:
                nursery.start_soon(partial(_keep_showing, progress, report, is_bar=is_bar))
            await run()
            nursery.cancel_scope.cancel(reason="the command has finished")


async def _keep_showing(progress: Progress, report: Callable[[str], None], *, is_bar: bool) -> None:
    if not is_bar:
        while True:
            await trio.sleep(LINE_SECONDS)
            report(progress.line())
    await trio.sleep(QUICK_SECONDS)
    with _bar(progress) as update:
        while True:
            update()
            await trio.sleep(BAR_SECONDS)


@contextmanager
def _bar(progress: Progress) -> Iterator[Callable[[], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn())

    class VisibleCursor(Console):
        def show_cursor(self, show: bool = True) -> bool:  # noqa: ARG002 -- rich's signature
            """Leave the cursor alone, which Ctrl-Z or SIGKILL would leave hidden."""
            return False

    console = VisibleCursor(file=sys.stderr)
    with Bar(*columns, console=console, auto_refresh=False, transient=True) as bar:
        task = bar.add_task("", total=progress.records_total)

        def update() -> None:
            bar.update(
                task,
                description=progress.line(),
                completed=progress.records,
                total=progress.records_total,
                refresh=True,
            )

        yield update
