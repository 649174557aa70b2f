"""``trionet pipeline``: analyse a broker's request log on Spark, and report the results.

PySpark, NumPy and Arrow are imported only when a subcommand runs.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import warnings
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from trionet._util._text import counted, printable, single_line
from trionet._util._times import TIME_FORMS
from trionet.errors import ConfigError

from .arguments._parser import Subcommands, flag, log_level, option, repeatable
from .arguments._values import allow_times, api_key, api_name, key_value
from .clients._connection import CLIENT_ID, DEFAULT_SERVERS, client_id, logging_to_stderr
from .clients._first_response import connect
from .terminal._output import stdout
from .terminal._streams import OutputError

if TYPE_CHECKING:
    from trionet.spark.pipeline._batches import BatchResult
    from trionet.spark.pipeline._job import BatchDone, Event, JobDone
    from trionet.spark.pipeline._session import Stop
    from trionet.spark.pipeline._storage import Intake
    from trionet.spark.pipeline.report._figures import Report

COMMANDS: Final = Subcommands(
    description="Turn the request log of a broker (request.log.topic) into rates, percentiles, top "
    "talkers, errors and anomalies, on Spark."
)

#: The required packages. PySpark requires pandas to pass Arrow batches to a function.
_REQUIRED: Final = ("pyspark", "pyarrow", "numpy", "pandas")
#: Those with which a report on a small, local folder is made.
_REPORT_REQUIRED: Final = ("pyarrow", "numpy")
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)")


def check_packages(names: Sequence[str]) -> None:
    """Check that packages are installed.

    Raises:
        ConfigError: a package is missing; the message says how to install it.
    """
    missing = [name for name in names if find_spec(name) is None]
    if missing:
        raise ConfigError(f"{', '.join(missing)} not found: pip install 'trionet[pipeline]'")


def check_environment() -> None:
    """Check that Spark can be started.

    Raises:
        ConfigError: PySpark, a dependency of PySpark, or Java is missing; the message says how to
            install it.
    """
    check_packages(_REQUIRED)
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java", path=os.path.join(home, "bin") if home else None) is None:
        where = f"in JAVA_HOME, {home}" if home else "on the PATH"
        raise ConfigError(
            f"no Java found {where}: Spark requires Java 17 or newer; install it (apt-get install "
            "openjdk-17-jre-headless) or set JAVA_HOME"
        )


def duration(text: str) -> float:
    """Parse a duration such as ``90s`` and return it in seconds."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise ArgumentTypeError(
            f"invalid duration {text!r}: expected a number and one of ms, s, m, h or d, such as 90s"
        )
    return float(found[1]) * _UNITS[found[2]]


def positive(text: str) -> int:
    """Parse a positive integer."""
    if not text.isdecimal() or int(text) == 0:
        raise ArgumentTypeError(f"invalid number {text!r}: expected an integer of at least 1")
    return int(text)


#: Of these no date before the first one is made.
_DAYS_MAX: Final = 36_500


def days(text: str) -> int:
    """Parse a number of days."""
    number = positive(text) if len(text) <= len(str(_DAYS_MAX)) else _DAYS_MAX + 1
    if number > _DAYS_MAX:
        raise ArgumentTypeError(
            f"invalid number of days {text!r}: expected an integer from 1 to {_DAYS_MAX}"
        )
    return number


def _named(parser: ArgumentParser) -> None:
    """Let both subcommands print messages under the name of the command."""
    parser.set_defaults(prog="trionet pipeline")


DEFAULT_MASTER: Final = "local[*]"
_MASTER: Final = option(
    "--master URL", "Spark master URL (default: local[*], this machine)", default=DEFAULT_MASTER
)


@COMMANDS.command(
    "run",
    "run the job that analyses a request log",
    _named,
    option(
        "--bootstrap-server HOST:PORT[,...]",
        f"bootstrap brokers (default: {DEFAULT_SERVERS})",
        default=DEFAULT_SERVERS,
    ),
    option("--topic NAME", "the broker's request.log.topic", required=True),
    option(
        "--results-topic NAME",
        "topic for the results; created if needed (default: the topic's name with -results)",
    ),
    option(
        "--folder PATH",
        "folder for the results as Parquet; any path that Spark can write",
        required=True,
    ),
    option(
        "--checkpoint PATH",
        "folder for the job's progress and unfinished minutes (default: _checkpoint in the folder)",
    ),
    _MASTER,
    option(
        "--watermark TIME",
        "how long to wait for late records after the end of a minute, such as 90s, 2m or 1h "
        "(default: 1m)",
        type=duration,
        default="1m",
    ),
    option(
        "--interval TIME",
        "how often to look for new records (default: 10s)",
        type=duration,
        default="10s",
    ),
    option(
        "--max-age TIME",
        "leave out, and count, records that are older than this when they are read: their clock "
        "was wrong, unless the topic keeps records for longer (default: 30d)",
        type=duration,
        default="30d",
    ),
    option(
        "--keep-days N",
        "delete results from the folder that are more than N days older than the newest "
        "(default: keep all)",
        type=days,
    ),
    option("--max-records N", "most records per micro-batch (default: unlimited)", type=positive),
    flag("--available-now", "process the available records and exit"),
    flag(
        "--allow-data-loss",
        "continue if records were deleted before they were read (default: fail)",
    ),
    repeatable(
        "--slo API[/CLIENT]=SHARE%",
        "a service level objective: the share of requests that must succeed, or 'within TIME' how "
        "many must be that fast ('Produce=99.9%% within 20ms'); its burn rates are written for "
        "each minute; may be repeated",
    ),
    repeatable(
        "--set KEY=VALUE",
        "a client setting (kafka.security.protocol=SSL) or a Spark setting "
        "(spark.executor.memory=4g); may be repeated",
    ),
    flag("--json", "report progress as JSON lines on standard output"),
    log_level("warning"),
    description="Read a request log and write, for each minute, rates, bytes and percentiles by "
    "API, client and listener, top talkers, errors, closed connections, quotas and anomalies, to a "
    "topic and as Parquet to a folder. A minute is written once, when the watermark has passed "
    "its end. SIGTERM or Ctrl-C stops the job; when restarted, it resumes where it stopped.",
)
def _run_job(arguments: Namespace) -> int:
    from trionet.spark.pipeline._session import Stop

    with Stop.on_signals() as stop:  # PySpark takes a second to import
        check_environment()
        _run_until(stop, arguments)
    return 0


def _run_until(stop: Stop, arguments: Namespace) -> None:
    from trionet.spark.pipeline._job import run_job
    from trionet.spark.pipeline._objectives import Objective
    from trionet.spark.pipeline._settings import JobSettings, split

    client, spark = split(dict(key_value(text, "--set") for text in arguments.set))
    folder = arguments.folder.rstrip("/")
    settings = JobSettings(
        bootstrap_servers=arguments.bootstrap_server,
        topic=arguments.topic,
        results_topic=arguments.results_topic or f"{arguments.topic}-results",
        folder=folder,
        checkpoint=arguments.checkpoint or f"{folder}/_checkpoint",
        master=arguments.master,
        delay_seconds=arguments.watermark,
        interval_seconds=arguments.interval,
        age_max_seconds=arguments.max_age,
        max_records=arguments.max_records,
        available_now=arguments.available_now,
        allow_data_loss=arguments.allow_data_loss,
        objectives=Objective.parse_all(arguments.slo),
        keep_days=arguments.keep_days,
        client={CLIENT_ID: client_id("trionet pipeline"), **client},
        spark=spark,
    )
    # PySpark warns at each query about pandas, which is not used here.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    with logging_to_stderr(arguments, holds=True):
        run_job(
            settings,
            stop,
            partial(print_event, as_json=arguments.json),
            partial(connect, address="--bootstrap-server"),
        )


#: The descriptions of records that are not counted in any minute.
_EXCLUDED = {
    "late": "late (their minute was over)",
    "malformed": "malformed",
    "newer": "of a newer version",
    "ahead": "ahead of the clock",
    "old": "too old",
}


#: What to do after a run that has written no minute, as the first one of fresh traffic does.
_NONE_FINISHED = (
    "run it again when the log has later records; with --watermark 0s, the first record of a later"
    " minute is enough"
)


def print_event(event: Event, *, as_json: bool) -> None:
    """Print an event of the job, as text on standard error or as JSON on standard output.

    Messages are always printed as text.
    """
    if as_json and not isinstance(event, str):
        try:
            print(json.dumps(_document(event)), flush=True)
        except BrokenPipeError as error:
            raise OutputError("the reader of standard output exited") from error
        return
    for line in _lines(event):
        print(f"trionet pipeline: {single_line(line)}", file=sys.stderr, flush=True)


def _lines(event: Event) -> list[str]:
    from trionet.spark.pipeline._job import JobDone

    if isinstance(event, str):
        return [event]
    excluded = _excluded(event.intake if isinstance(event, JobDone) else event.result.intake)
    if isinstance(event, JobDone):
        how = "stopped" if event.is_stopped else "all records read"
        is_open = f"{counted(event.open_records, 'record')} in unfinished minutes"
        read = (
            f"{counted(event.intake.records, 'record')} read, "
            f"{counted(event.windows, 'minute')} finished"
        )
        lines = [f"{how}: {read}, {is_open}{excluded}"]
        if event.open_records and not event.windows:
            lines.append(_NONE_FINISHED)
        return lines
    result = event.result
    if result.windows:
        requests = sum(result.windows.values())
        lag = counted(event.lag, "record")
        return [f"{_span(result)}: {counted(requests, 'request')}, lag {lag}{excluded}"]
    if not event.windows:
        read = counted(event.records, "record")
        lag = counted(event.lag, "record")
        return [f"no minute finished yet: {read} read, lag {lag}{excluded}"]
    return [f"micro-batch {result.batch}{excluded}"] if excluded else []


def _excluded(intake: Intake) -> str:
    found = {name: getattr(intake, name) for name in _EXCLUDED}
    return "".join(f", {count:,} {_EXCLUDED[name]}" for name, count in found.items() if count)


def _span(result: BatchResult) -> str:
    first, last = min(result.windows), max(result.windows)
    if first == last:
        return _time(first)
    return f"{_time(first)} to {_time(last)}, {counted(len(result.windows), 'minute')}"


def _time(window: int) -> str:
    return datetime.fromtimestamp(window * 60, UTC).strftime("%Y-%m-%d %H:%M")


def _document(event: BatchDone | JobDone) -> dict[str, Any]:
    import attrs

    from trionet.spark.pipeline._job import JobDone

    if isinstance(event, JobDone):
        intake = {"records": event.intake.records, **attrs.asdict(event.intake)}
        others = {"open_records": event.open_records, "is_stopped": event.is_stopped}
        return {"event": "end", "windows": event.windows, **intake, **others}
    result = event.result
    windows = {f"{_time(window).replace(' ', 'T')}:00Z": n for window, n in result.windows.items()}
    return {
        "event": "batch",
        "batch": result.batch,
        "windows": windows,
        "lag": event.lag,
        "records": result.intake.records,
        **attrs.asdict(result.intake),
        "clocks_ahead": dict(result.ahead),
    }


TOP: Final = 10
_APIS: Final = "`trionet decode --list` shows the known ones"


@COMMANDS.command(
    "report",
    "report the job's results as tables or as a page",
    _named,
    allow_times,
    option(
        "--folder PATH",
        "the folder of `trionet pipeline run --folder`; any path that Spark can read",
        required=True,
    ),
    option(
        "--from TIME",
        f"first minute: {TIME_FORMS} (default: the first available)",
        dest="start",
    ),
    option(
        "--to TIME",
        "end, exclusive; a day is included up to its end (default: the last available)",
        dest="end",
    ),
    option("--top N", f"rows per table (default: {TOP})", type=positive, default=TOP),
    *(
        repeatable(f"{name} NAME", f"only requests {what}; may be repeated")
        for name, what in (
            ("--api", "of this API, by name or key"),
            ("--client", "of this client id"),
            ("--listener", "of this listener"),
        )
    ),
    option("--html FILE", "write an HTML page with charts to this file"),
    flag("--json", "print a JSON document instead of tables"),
    _MASTER,
    repeatable(
        "--set spark.KEY=VALUE",
        "a Spark setting, for instance for access to a path "
        "(spark.hadoop.fs.s3a.endpoint=...); may be repeated",
    ),
    description="Report what the pipeline has written to a folder: request rates, latencies and "
    "where the time went, top clients, errors, and anomalous minutes.",
)
def _run_report(arguments: Namespace) -> int:
    from trionet.spark.pipeline._session import check_master, open_session
    from trionet.spark.pipeline.report._inputs import Filters, check_folder, time_range

    # Check everything before starting Spark, which takes seconds.
    now = datetime.now(UTC)
    times = time_range(arguments.start, arguments.end, now)
    check_folder(arguments.folder)
    check_master(arguments.master)
    path = None if arguments.html is None else _page_path(arguments.html)
    settings = dict(map(_setting, arguments.set))
    keys = [api_key(name, _APIS) for name in arguments.api]
    check_packages(_REPORT_REQUIRED)
    from trionet.spark.pipeline.report._arrow_queries import is_small
    from trionet.spark.pipeline.report._report import make_report

    apis = {key: api_name(key) for key in keys}
    filters = Filters(apis, tuple(arguments.client), tuple(arguments.listener))
    # PySpark warns about pandas, which is not used here.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    asked = (arguments.folder, times, filters, arguments.top, now)
    is_default = arguments.master == DEFAULT_MASTER and not settings
    if is_default and is_small(arguments.folder, times):
        report = make_report(None, *asked)
    else:
        check_environment()
        with open_session("trionet pipeline report", arguments.master, settings) as session:
            report = make_report(session, *asked)
    if path is not None:  # first, since a reader of the tables may exit early
        _write_page(path, report, arguments.top, now)
    _write(report, arguments)
    return 0


def _write(report: Report, arguments: Namespace) -> None:
    if arguments.json:
        from trionet.spark.pipeline.report._json import document

        print(document(report))
    else:
        from trionet.spark.pipeline.report._terminal import write

        write(report, arguments.top, stdout())
    sys.stdout.flush()


def _setting(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator or not key.startswith("spark."):
        raise ConfigError(f"--set {text}: must have the form spark.KEY=VALUE")
    return key, value


def _page_path(name: str) -> Path:
    """Return the path of ``--html``, which is checked to be writable before Spark starts."""
    path = Path(name)
    folder = path.parent
    if path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise ConfigError(f"--html {name}: the file cannot be written")
    return path


def _write_page(path: Path, report: Report, top: int, now: datetime) -> None:
    """Replace the file atomically, so that a reader never sees an incomplete page."""
    from trionet.spark.pipeline.report._page import page

    part = path.with_name(f"{path.name}.part")
    part.write_text(page(report, top, now), encoding="utf-8")
    part.replace(path)
    print(f"trionet pipeline report: written to {printable(str(path))}", file=sys.stderr)
