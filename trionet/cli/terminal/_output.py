"""Prints the output of commands, as tables for people and as JSON or CSV for programs.

Data goes to standard output and messages go to standard error. Other users choose the names of
topics and groups, so control characters are escaped in all output to a terminal. Destructive
commands ask for confirmation there, or need ``--yes``.
"""

from __future__ import annotations

import csv
import json
import os
import sys
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, Any, Final, NamedTuple, TypeAlias

from trionet._util._text import printable, single_line
from trionet.errors import ConfigError

from ..arguments._parser import flag, one_of, option

TEXT, JSON, CSV = "text", "json", "csv"
FORMATS: Final = (TEXT, JSON, CSV)

Value: TypeAlias = "str | int | float | bool | Sequence[str] | Sequence[int] | None"

_BOLD: Final = "\x1b[1m"
_PLAIN: Final = "\x1b[0m"
_GAP: Final = "  "
#: The maximum number of characters of a cell, longer than any topic's name. Others choose ids, to
#: which all rows are padded.
_CELL_CHARS_MAX: Final = 256
#: The same for the last column, which is not padded: it may be the documentation of a setting.
_LAST_CELL_CHARS_MAX: Final = 2_000


class Table(NamedTuple):
    """Rows of values with named columns.

    Attributes:
        fields: the column names as used in JSON and CSV, such as ``log_end_offset``.
        rows: the rows with one value per column, where None is ``-`` in text and empty in CSV.
        title: the line above the table if several tables are printed together.
        has_header: whether the text form shows the column names.
    """

    fields: Sequence[str]
    rows: Sequence[Sequence[Value]]
    title: str = ""
    has_header: bool = True

    def documents(self) -> list[dict[str, Value]]:
        """Return the rows as objects for JSON."""
        return [dict(zip(self.fields, row, strict=True)) for row in self.rows]

    def first_columns(self, count: int) -> Table:
        """Return a table with only the first columns."""
        return self._replace(fields=self.fields[:count], rows=[row[:count] for row in self.rows])

    def without_first_column(self) -> Table:
        """Return a table with all columns except the first."""
        return self._replace(fields=self.fields[1:], rows=[row[1:] for row in self.rows])


def facts(values: Mapping[str, Value], title: str = "") -> Table:
    """Return a table of names and values without a header."""
    rows = [(name.replace("_", " "), value) for name, value in values.items()]
    return Table(("name", "value"), rows, title, has_header=False)


add_format_arguments: Final = one_of(
    option(
        "--format",
        "output format: text tables (default), JSON, or CSV with a header",
        choices=FORMATS,
        default=TEXT,
    ),
    option("--json", "short for --format json", dest="format", action="store_const", const=JSON),
)


def write(
    form: str,
    tables: Table | Sequence[Table],
    document: object = None,
    *,
    as_csv: Table | None = None,
) -> None:
    """Print tables or a document to standard output.

    Args:
        form: the format, one of :data:`FORMATS`.
        tables: the tables for the text form.
        document: the document for the JSON form; by default the rows of the tables.
        as_csv: the table for the CSV form; by default the last table.
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
    arguments: Namespace,
    tables: Table | Sequence[Table],
    errors: Iterable[object],
    document: object = None,
    *,
    as_csv: Table | None = None,
) -> int:
    """Print results to standard output and errors to standard error.

    If there are errors and no rows, the text form omits the empty table. JSON and CSV are always
    printed. The errors are printed even if the results cannot be written.

    Args:
        arguments: the arguments, including ``format`` and ``prog``; with ``dry_run``, a message
            that nothing was changed follows.
        tables: see :func:`write`.
        errors: the errors, printed after the tables.
        document: see :func:`write`.
        as_csv: see :func:`write`.

    Returns:
        The exit status: 1 if there are errors, otherwise 0.
    """
    found = list(errors)
    shown = [tables] if isinstance(tables, Table) else tables
    try:
        if arguments.format != TEXT or not found or any(table.rows for table in shown):
            write(arguments.format, tables, document, as_csv=as_csv)
    finally:
        status = print_errors(arguments, found)
        if getattr(arguments, "dry_run", False):
            print_message(arguments, "nothing was changed (--dry-run)")
    return status


def stdout() -> IO[str]:
    """Return standard output, configured to escape characters that the encoding lacks."""
    out = sys.stdout
    reconfigure = getattr(out, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")
    return out


def is_terminal(file: IO[str]) -> bool:
    """Return whether the file is a terminal that supports escape sequences."""
    return file.isatty() and os.environ.get("TERM", "dumb") not in {"", "dumb"}


def print_message(arguments: Namespace, text: str) -> None:
    """Print a message to standard error, prefixed with the name of the command."""
    print(f"{arguments.prog}: {single_line(text)}", file=sys.stderr, flush=True)


def print_errors(arguments: Namespace, errors: Iterable[object]) -> int:
    """Print errors to standard error, and return the exit status: 1 if there are any, else 0."""
    status = 0
    for error in errors:
        print_message(arguments, str(error))
        status = arguments.status = 1  # even if the reader of the results exits early
    return status


def table_text(table: Table, *, is_terminal: bool = False) -> str:
    """Format a table with aligned columns, where numbers are right-aligned.

    Long values are cut, which ends them with ``...``; JSON and CSV have them whole.
    """
    rows = [
        [*map(_cell, row[:-1]), *(_cell(value, _LAST_CELL_CHARS_MAX) for value in row[-1:])]
        for row in table.rows
    ]
    headers = [name.replace("_", "-").upper() for name in table.fields]
    lines = [headers, *rows] if table.has_header else rows
    widths = [max((_width(line[n]) for line in lines), default=0) for n in range(len(headers))]
    is_right = [_is_number(row[n] for row in table.rows) for n in range(len(headers))]
    texts = [_line(line, widths, is_right) for line in lines]
    if is_terminal and table.has_header:
        texts[0] = f"{_BOLD}{texts[0]}{_PLAIN}"
    if table.title:
        title = _cell(table.title)
        texts.insert(0, f"{_BOLD}{title}{_PLAIN}" if is_terminal else title)
    return "".join(f"{text}\n" for text in texts)


def json_text(document: object, out: IO[str]) -> str:
    """Format a document as JSON on one line, or with indentation on a terminal.

    Control characters are escaped.
    """
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
    """Convert a set, which JSON cannot represent, to a sorted list."""
    return sorted(value)


def _write_csv(table: Table, out: IO[str]) -> None:
    # Programs get names unchanged; on a terminal they could act as control sequences.
    shown = printable if out.isatty() else str
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.fields)
    for row in table.rows:
        writer.writerow([shown(_text(value)) for value in row])


def _cell(value: Value, chars_max: int = _CELL_CHARS_MAX) -> str:
    if value is None:
        return "-"
    text = _text(value)
    shown = printable(text[:chars_max])
    return shown if len(text) <= chars_max >= len(shown) else f"{shown[: chars_max - 3]}..."


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
    """Return the width of a text in terminal cells."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # imported only for names that need it

    return cell_len(text)


YES: Final = flag(
    "-y, --yes, --no-confirm", "do not ask for confirmation; required without a terminal"
)


def confirmed(arguments: Namespace, question: str) -> bool:
    """Return whether the user confirms an operation, by ``--yes`` or on the terminal.

    Args:
        arguments: the arguments, including ``yes``.
        question: the operation to confirm, without a question mark.

    Raises:
        ConfigError: there is neither ``--yes`` nor a terminal.
    """
    if arguments.yes:
        return True
    if sys.stdin is None or not sys.stdin.isatty():
        raise ConfigError(
            "cannot ask for confirmation, since stdin is not a terminal; pass --yes to "
            f"{single_line(question)}"
        )
    print(f"{arguments.prog}: {single_line(question)}? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() in {"y", "yes"}:
        return True
    print(f"{arguments.prog}: nothing was changed", file=sys.stderr)
    return False
