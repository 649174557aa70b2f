"""How far a command is: a bar on a terminal, lines for those who ask for them, a last line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import attrs
import trio

from trionet._util._counted import counted

#: Between two looks at how far it is, on a terminal and without one.
BAR_SECONDS: Final = 0.1
LINE_SECONDS: Final = 1.0
#: A command that is done sooner shows no bar.
QUICK_SECONDS: Final = 0.5
_UNITS: Final = ("B", "kB", "MB", "GB", "TB")


@attrs.define
class Progress:
    """What was done so far.

    Attributes:
        records: how many.
        size: how many bytes of them.
        records_total: how many there will be; None if nobody knows.
        note: what else there is to say, such as how far behind a consumer is.
    """

    records: int = 0
    size: int = 0
    records_total: int | None = None
    note: str = ""
    _start: float = 0.0

    def begin(self) -> None:
        """The time runs from now on."""
        self._start = trio.current_time()

    def line(self) -> str:
        """What was done, and how quickly."""
        seconds = trio.current_time() - self._start
        records = counted(self.records, "record")
        rate = self.records / seconds if seconds > 0 else 0.0
        text = f"{records}, {sized(self.size)} in {seconds:.1f} s, {rate:,.0f}/s"
        return f"{text}, {self.note}" if self.note else text


def sized(size: float) -> str:
    """A number of bytes as people read it."""
    for unit in _UNITS[:-1]:
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} {_UNITS[-1]}"


async def keep_showing(progress: Progress, tell: Callable[[str], None], *, is_bar: bool) -> None:
    """Show the progress until this is cancelled.

    Args:
        progress: of others, who change it.
        tell: writes a line where there is no bar.
        is_bar: whether there is one.
    """
    if not is_bar:
        while True:
            await trio.sleep(LINE_SECONDS)
            tell(progress.line())
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
    console = Console(file=sys.stderr)
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
