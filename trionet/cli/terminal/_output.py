"""What commands print: tables for people, JSON and CSV for programs.

Data goes to standard output. Names come from whoever made a topic or a group: what a terminal might
obey or hide is escaped in all that people read.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, Any, Final, NamedTuple, TypeAlias

from trionet._util._printable import printable

TEXT, JSON, CSV = "text", "json", "csv"
FORMATS: Final = (TEXT, JSON, CSV)

Value: TypeAlias = "str | int | float | bool | Sequence[str] | Sequence[int] | None"

_BOLD: Final = "\x1b[1m"
_PLAIN: Final = "\x1b[0m"
_GAP: Final = "  "


class Table(NamedTuple):
    """Rows of values under names.

    Attributes:
        fields: the names, as JSON and CSV have them: ``log_end_offset``.
        rows: a value for each name; None is a ``-`` for people and nothing in CSV.
        title: a line above it, where several tables stand below one another.
        has_header: whether people see the names.
    """

    fields: Sequence[str]
    rows: Sequence[Sequence[Value]]
    title: str = ""
    has_header: bool = True

    def documents(self) -> list[dict[str, Value]]:
        """The rows as JSON has them."""
        return [dict(zip(self.fields, row, strict=True)) for row in self.rows]


def facts(values: Mapping[str, Value], title: str = "") -> Table:
    """A table of two columns without a header: what something is called, and what it is."""
    rows = [(name.replace("_", " "), value) for name, value in values.items()]
    return Table(("name", "value"), rows, title, has_header=False)


def add_format_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe ``--format`` and ``--json``."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--format",
        dest="format",
        choices=FORMATS,
        default=TEXT,
        help="how to print: tables for people (default), JSON, or CSV with a header",
    )
    group.add_argument(
        "--json", dest="format", action="store_const", const=JSON, help="short for --format json"
    )


def write(
    form: str,
    tables: Table | Sequence[Table],
    document: object = None,
    *,
    as_csv: Table | None = None,
) -> None:
    """Print once, to standard output.

    Args:
        form: one of :data:`FORMATS`.
        tables: what people see.
        document: what JSON has; by default the rows of the tables.
        as_csv: what CSV has; by default the last table.
    """
    shown = [tables] if isinstance(tables, Table) else list(tables)
    out = stdout()
    if form == JSON:
        if document is None:
            document = [row for table in shown for row in table.documents()]
        out.write(f"{json_text(document, out)}\n")
    elif form == CSV:
        _write_csv(as_csv if as_csv is not None else shown[-1], out)
    else:
        out.write("\n".join(table_text(table, is_terminal=is_terminal(out)) for table in shown))
    out.flush()


def write_results(
    arguments: argparse.Namespace,
    tables: Table | Sequence[Table],
    errors: Iterable[object],
    document: object = None,
    *,
    as_csv: Table | None = None,
) -> int:
    """Print what was found or done, and tell what failed.

    Where nothing came of it people see why, and no headings above nothing; programs get a document
    all the same.

    Args:
        arguments: with ``format``, and what :func:`tell` needs.
        tables: see :func:`write`, as the others.
        errors: what failed.
        document: see there.
        as_csv: see there.

    Returns:
        The exit status: 1 if something failed, else 0.
    """
    told = list(errors)
    shown = [tables] if isinstance(tables, Table) else tables
    if arguments.format != TEXT or not told or any(table.rows for table in shown):
        write(arguments.format, tables, document, as_csv=as_csv)
    return tell_errors(arguments, told)


def stdout() -> IO[str]:
    """Standard output; a character that its encoding lacks becomes its number there."""
    out = sys.stdout
    if out is None:  # somebody has closed it, who wants nothing of it
        return io.StringIO()
    reconfigure = getattr(out, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")
    return out


def is_terminal(file: IO[str]) -> bool:
    """Whether somebody looks at it who understands escapes."""
    return file.isatty() and os.environ.get("TERM", "dumb") not in {"", "dumb"}


def tell(arguments: argparse.Namespace, text: str) -> None:
    """A message, on standard error."""
    print(f"{arguments.prog}: {harmless(text)}", file=sys.stderr, flush=True)


def tell_errors(arguments: argparse.Namespace, errors: Iterable[object]) -> int:
    """Tell what failed; returns the exit status: 1, or 0 if nothing has."""
    status = 0
    for error in errors:
        tell(arguments, str(error))
        status = 1
    return status


def harmless(text: str) -> str:
    """A message in one line, without what a terminal might obey or hide."""
    return "".join(each if each.isprintable() else printable(each) for each in text)


def table_text(table: Table, *, is_terminal: bool = False) -> str:
    """A table with fixed columns; those of numbers are aligned to the right."""
    rows = [[_cell(value) for value in row] for row in table.rows]
    headers = [name.replace("_", "-").upper() for name in table.fields]
    lines = [headers, *rows] if table.has_header else rows
    widths = [max((_width(line[n]) for line in lines), default=0) for n in range(len(headers))]
    is_right = [_is_number(row[n] for row in table.rows) for n in range(len(headers))]
    texts = [_line(line, widths, is_right) for line in lines]
    if is_terminal and table.has_header:
        texts[0] = f"{_BOLD}{texts[0]}{_PLAIN}"
    title = [f"{_BOLD}{table.title}{_PLAIN}" if is_terminal else table.title] if table.title else []
    return "".join(f"{text}\n" for text in [*title, *texts])


def json_text(document: object, out: IO[str]) -> str:
    """A document in one line, or on a terminal in many; harmless there, too."""
    text = json.dumps(
        document,
        ensure_ascii=not (getattr(out, "encoding", None) or "").lower().startswith("utf"),
        indent=2 if out.isatty() else None,
        default=_plain,
    )
    return "".join(map(_json_character, text)) if not text.isprintable() else text


def _json_character(character: str) -> str:
    if character.isprintable() or character == "\n":
        return character
    return json.dumps(character)[1:-1]


def _plain(value: Any) -> object:
    """What JSON knows no form of: sets, most of all."""
    return sorted(value)


def _write_csv(table: Table, out: IO[str]) -> None:
    # A program wants names as they are; on a terminal they could do something to it.
    shown = printable if out.isatty() else str
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.fields)
    for row in table.rows:
        writer.writerow([shown(_text(value)) for value in row])


def _cell(value: Value) -> str:
    return "-" if value is None else printable(_text(value))


def _text(value: Value) -> str:
    match value:
        case None:
            return ""
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return f"{value:.15g}"
    return ",".join(map(str, value))


def _is_number(values: Iterable[Value]) -> bool:
    found = [value for value in values if value is not None]
    return bool(found) and all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in found
    )


def _line(cells: Sequence[str], widths: Sequence[int], is_right: Sequence[bool]) -> str:
    padded = []
    for text, width, right in zip(cells, widths, is_right, strict=True):
        blank = " " * (width - _width(text))
        padded.append(f"{blank}{text}" if right else f"{text}{blank}")
    return _GAP.join(padded).rstrip(" ")


def _width(text: str) -> int:
    """How many cells of a terminal a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # only where somebody's names need it

    return cell_len(text)
