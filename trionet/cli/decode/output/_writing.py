"""Writes entries to standard output, in colour on a terminal.

Output is flushed after each entry, because the input may be a pipe with long pauses.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable
from typing import Final

from ..messages._tree import Entry
from ._documents import document
from ._lines import Line, entry_lines

_STYLES: Final = {
    "title": "bold cyan",
    "name": "blue",
    "number": "magenta",
    "text": "green",
    "meaning": "yellow",
    "problem": "bold red",
}


def write_documents(entries: Iterable[Entry], bytes_shown: int | None) -> bool:
    """Write entries as JSON lines, and return whether all entries are valid."""
    is_valid = True
    for entry in entries:
        is_valid = is_valid and entry.problem is None
        print(json.dumps(document(entry, bytes_shown)), flush=True)
    return is_valid


def write_lines(entries: Iterable[Entry], bytes_shown: int | None) -> bool:
    """Write entries as text, and return whether all entries are valid."""
    is_valid = True
    write = _line_writer()
    for entry in entries:
        is_valid = is_valid and entry.problem is None
        for line in entry_lines(entry, bytes_shown):
            write(line)
        sys.stdout.flush()
    return is_valid


def _line_writer() -> Callable[[Line], None]:
    if not (sys.stdout.isatty() or os.environ.get("FORCE_COLOR")):
        return lambda line: print("".join(part.text for part in line))
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)

    def write(line: Line) -> None:
        text = Text.assemble(*((part.text, _STYLES.get(part.style, "")) for part in line))
        console.print(text, soft_wrap=True)

    return write
