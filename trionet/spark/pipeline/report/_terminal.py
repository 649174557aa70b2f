"""Writes a report as text, coloured if the output is a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Final

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ...._util._console import PipedConsole
from ...._util._text import printable
from ._figures import Report
from ._sections import PARTS, Section, duration, overview, sections

#: The width of plain text.
PLAIN_WIDTH: Final = 140
#: The number of cells in a bar.
_BAR: Final = 40

# The color-blind safe palette of Okabe and Ito; the glyphs differ, too, for output without colors.
_STYLES: Final = ("#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00")
_GLYPHS: Final = "█▓▒░▚▄"
_ASCII_GLYPHS: Final = "#=+-%!"


def write(report: Report, top: int, file: IO[str]) -> None:
    """Write a report as text.

    Args:
        report: the report.
        top: the maximum number of rows per table.
        file: where to write it; coloured if this is a terminal.
    """
    console = PipedConsole(file=file, highlight=False, markup=False, emoji=False)
    if not file.isatty():
        console.width = PLAIN_WIDTH
    for part in _parts(report, top, is_ascii="utf" not in console.encoding.lower()):
        console.print(Padding(part, (0, 0, 1, 0)))


def _parts(report: Report, top: int, *, is_ascii: bool) -> Iterator[RenderableType]:
    yield _grid(overview(report))
    incidents, apis, *others = sections(report, top)
    yield _table(incidents)
    yield _table(apis)
    if report.apis:
        yield _phases(report, _ASCII_GLYPHS if is_ascii else _GLYPHS)
    for section in others:
        yield _table(section)


def _grid(lines: Sequence[tuple[str, str]]) -> Table:
    grid = Table.grid(padding=(0, 2))
    for name, text in lines:
        grid.add_row(Text(name, "bold"), Text(text, overflow="fold"))
    return grid


def _table(section: Section) -> RenderableType:
    title = Text(section.title, "bold cyan")
    if not section.rows:
        return Group(title, Text(section.placeholder))
    table = Table(title_justify="left", box=None, padding=(0, 2, 0, 0), header_style="bold")
    for heading in section.headings:
        table.add_column(
            Text(heading.rstrip(">|")),
            justify="right" if heading.endswith(">") else "left",
            no_wrap=heading.endswith((">", "|")),
            overflow="fold",
        )
    for row in section.rows:
        # As Text, so that rich does not interpret names of clients as markup.
        table.add_row(*map(Text, row))
    return Group(title, table, *([Text(section.note, "dim")] if section.note else []))


def _phases(report: Report, glyphs: str) -> RenderableType:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("API", overflow="fold")
    table.add_column("mean", justify="right", no_wrap=True)
    table.add_column("share of phases", no_wrap=True)
    for api in report.apis:
        means = {part: api.traffic.mean_us(part) for part in PARTS}
        table.add_row(
            Text(printable(api.name)),
            Text(duration(api.traffic.mean_us("total"))),
            _bar(means, glyphs),
        )
    legend = Text()
    for style, glyph, name in zip(_STYLES, glyphs, PARTS.values(), strict=True):
        legend.append(glyph * 2, style).append(f" {name}   ")
    return Group(Text("Phases", "bold cyan"), table, legend)


def _bar(parts: Mapping[str, float], glyphs: str) -> Text:
    bar = Text()
    for cells, glyph, style in zip(
        divided(list(parts.values()), _BAR), glyphs, _STYLES, strict=True
    ):
        bar.append(glyph * cells, style)
    return bar


def divided(parts: Sequence[float], cells: int) -> Sequence[int]:
    """Divide the cells of a bar in proportion to its parts (largest remainder method)."""
    whole = sum(parts)
    if not whole:
        return [0] * len(parts)
    exact = [cells * part / whole for part in parts]
    counts = [int(each) for each in exact]
    by_remainder = sorted(range(len(parts)), key=lambda n: counts[n] - exact[n])
    for n in by_remainder[: cells - sum(counts)]:
        counts[n] += 1
    return counts
