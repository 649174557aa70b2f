"""``trionet pipeline report``: the pipeline's results as tables, JSON, or an HTML page."""

from __future__ import annotations

import argparse
import os
import re
import sys
import warnings
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from trionet._util._text import printable
from trionet.errors import ConfigError

from ..arguments._name_patterns import api_key, api_name
from ._run import check_environment, positive

if TYPE_CHECKING:
    from trionet.spark.pipeline.report._figures import Report
    from trionet.spark.pipeline.report._inputs import Filters, TimeRange

TOP: Final = 10
_APIS: Final = "`trionet decode --list` shows the known ones"
# A relative time, which argparse must not take for an option.
_RELATIVE: Final = re.compile(r"-\d+[smhdw]?")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    parser.description = (
        "Report what the pipeline has written to a folder: request rates, latencies and where the "
        "time went, top clients, errors, and anomalous minutes."
    )
    # argparse reads `--from -1h` as two options unless the value looks like a negative number.
    parser._negative_number_matcher = _RELATIVE  # noqa: SLF001
    parser.add_argument(
        "--folder",
        required=True,
        metavar="PATH",
        help="the folder of `trionet pipeline run --folder`; any path that Spark can read",
    )
    parser.add_argument(
        "--from",
        dest="start",
        metavar="TIME",
        help="first minute: a day (2026-03-01), a UTC time (2026-03-01T12:30), a time with its "
        "zone, or relative to now (-90m, -1h, -2d) (default: the first available)",
    )
    parser.add_argument(
        "--to",
        dest="end",
        metavar="TIME",
        help="end, exclusive; a day is included up to its end (default: the last available)",
    )
    parser.add_argument(
        "--top", type=positive, default=TOP, metavar="N", help=f"rows per table (default: {TOP})"
    )
    for option, what in (
        ("--api", "of this API, by name or key"),
        ("--client", "of this client id"),
        ("--listener", "of this listener"),
    ):
        parser.add_argument(
            option,
            action="append",
            default=[],
            metavar="NAME",
            help=f"only requests {what}; may be repeated",
        )
    parser.add_argument(
        "--html", metavar="FILE", help="write an HTML page with charts to this file"
    )
    parser.add_argument(
        "--json", action="store_true", help="print a JSON document instead of tables"
    )
    parser.add_argument(
        "--master",
        default="local[*]",
        metavar="URL",
        help="Spark master URL (default: local[*], this machine)",
    )
    parser.add_argument(
        "--set",
        metavar="spark.KEY=VALUE",
        action="append",
        default=[],
        help="a Spark setting, for instance for access to a path "
        "(spark.hadoop.fs.s3a.endpoint=...); may be repeated",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status: 0, 2 on invalid arguments or without Spark."""
    from trionet.spark.pipeline._session import check_master
    from trionet.spark.pipeline.report._inputs import check_folder, time_range

    # Check everything before starting Spark, which takes seconds.
    now = datetime.now(UTC)
    times = time_range(arguments.start, arguments.end, now)
    check_folder(arguments.folder)
    check_master(arguments.master)
    page = None if arguments.html is None else _Page(arguments.html)
    settings = dict(map(_setting, arguments.set))
    keys = [api_key(name, _APIS) for name in arguments.api]
    check_environment()
    filters = _filters(keys, arguments)
    report = _report(arguments, times, filters, settings, now)
    _write(report, arguments)
    if page is not None:
        page.write(report, arguments.top, now)
    return 0


def _report(
    arguments: argparse.Namespace,
    times: TimeRange,
    filters: Filters,
    settings: Mapping[str, str],
    now: datetime,
) -> Report:
    from trionet.spark.pipeline._session import open_session
    from trionet.spark.pipeline.report._report import make_report

    # PySpark warns about pandas, which is not used here.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    with open_session("trionet pipeline report", arguments.master, settings) as session:
        return make_report(session, arguments.folder, times, filters, arguments.top, now)


def _write(report: Report, arguments: argparse.Namespace) -> None:
    if arguments.json:
        from trionet.spark.pipeline.report._json import document

        print(document(report))
    else:
        from trionet.spark.pipeline.report._terminal import write

        reconfigure = getattr(sys.stdout, "reconfigure", None)
        if reconfigure is not None:  # escape characters that the encoding lacks
            reconfigure(errors="backslashreplace")
        write(report, arguments.top, sys.stdout)
    sys.stdout.flush()


def _filters(keys: Sequence[int], arguments: argparse.Namespace) -> Filters:
    from trionet.spark.pipeline.report._inputs import Filters

    apis = {key: api_name(key) for key in keys}
    return Filters(apis, tuple(arguments.client), tuple(arguments.listener))


def _setting(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator or not key.startswith("spark."):
        raise ConfigError(f"--set {text}: must have the form spark.KEY=VALUE")
    return key, value


class _Page:
    """The output file of ``--html``, checked to be writable before Spark starts.

    The complete page replaces the file atomically, so that a reader never sees an incomplete page.
    """

    def __init__(self, name: str) -> None:
        self._path = Path(name)
        folder = self._path.parent
        if self._path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
            raise ConfigError(f"--html {name}: the file cannot be written")

    def write(self, report: Report, top: int, now: datetime) -> None:
        from trionet.spark.pipeline.report._page import page

        part = self._path.with_name(f"{self._path.name}.part")
        part.write_text(page(report, top, now), encoding="utf-8")
        part.replace(self._path)
        print(f"trionet pipeline report: written to {printable(str(self._path))}", file=sys.stderr)
