"""Text wrapped to the width of the screen; pure."""

from __future__ import annotations

from rich.cells import cell_len, chop_cells

from ._cells import UNICODE, Glyphs, sanitized


def wrapped(text: str, width: int, glyphs: Glyphs = UNICODE) -> list[str]:
    """The text sanitized and wrapped at blanks where possible; its own line breaks are kept.

    Args:
        text: of any origin.
        width: in cells.
        glyphs: the characters to draw with.
    """
    lines: list[str] = []
    for line in text.expandtabs().splitlines() or [""]:
        lines += _broken(sanitized(line, glyphs), max(2, width))
    return lines


def _broken(line: str, width: int) -> list[str]:
    if cell_len(line) <= width:
        return [line]
    lines, current = [], ""
    for word in line.split(" "):
        joined = f"{current} {word}" if current else word
        if cell_len(joined) <= width:
            current = joined
            continue
        if current:
            lines.append(current)
        *whole, current = chop_cells(word, width) or [""]
        lines += whole
    return [*lines, current]
