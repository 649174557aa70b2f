"""``trionet pipeline run``: run the job until Ctrl-C or SIGTERM, or until all records are read."""

from __future__ import annotations

import argparse
import logging
import os
import re
import shutil
import sys
import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Final

from trionet.errors import ConfigError

#: The required packages. PySpark requires pandas to pass Arrow batches to a function.
_REQUIRED: Final = ("pyspark", "pyarrow", "numpy", "pandas")
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    parser.description = (
        "Read a request log and write, for each minute, rates, bytes and percentiles by API, "
        "client and listener, top talkers, errors, closed connections, quotas and anomalies, to a "
        "topic and as Parquet to a folder. A minute is written once, when the watermark has passed "
        "its end. SIGTERM or Ctrl-C stops the job; when restarted, it resumes where it stopped."
    )
    _add_places(parser)
    parser.add_argument(
        "--watermark",
        type=duration,
        default="1m",
        metavar="TIME",
        help="how long to wait for late records after the end of a minute, such as 90s, 2m or 1h "
        "(default: 1m)",
    )
    parser.add_argument(
        "--interval",
        type=duration,
        default="10s",
        metavar="TIME",
        help="how often to look for new records (default: 10s)",
    )
    parser.add_argument(
        "--max-records",
        type=positive,
        metavar="N",
        help="most records per micro-batch (default: unlimited)",
    )
    parser.add_argument(
        "--available-now", action="store_true", help="process the available records and exit"
    )
    parser.add_argument(
        "--allow-data-loss",
        action="store_true",
        help="continue if records were deleted before they were read (default: fail)",
    )
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="a client setting (kafka.security.protocol=SSL) or a Spark setting "
        "(spark.executor.memory=4g); may be repeated",
    )
    parser.add_argument(
        "--json", action="store_true", help="report progress as JSON lines on standard output"
    )


def _add_places(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--bootstrap-server",
        default="127.0.0.1:9092",
        metavar="HOST:PORT[,...]",
        help="bootstrap brokers (default: 127.0.0.1:9092)",
    )
    parser.add_argument(
        "--topic", required=True, metavar="NAME", help="the broker's request.log.topic"
    )
    parser.add_argument(
        "--results-topic",
        metavar="NAME",
        help="topic for the results; created if needed (default: the topic's name with -results)",
    )
    parser.add_argument(
        "--folder",
        required=True,
        metavar="PATH",
        help="folder for the results as Parquet; any path that Spark can write",
    )
    parser.add_argument(
        "--checkpoint",
        metavar="PATH",
        help="folder for the job's progress and unfinished minutes (default: _checkpoint in the "
        "folder)",
    )
    parser.add_argument(
        "--master",
        default="local[*]",
        metavar="URL",
        help="Spark master URL (default: local[*], this machine)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status: 0, 1 on failure, 2 on invalid settings."""
    check_environment()
    from trionet.spark.pipeline._job import run_job
    from trionet.spark.pipeline._settings import JobSettings, split

    from ._pipeline_output import EventPrinter

    client, spark = split(_settings(arguments.set))
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
        max_records=arguments.max_records,
        available_now=arguments.available_now,
        allow_data_loss=arguments.allow_data_loss,
        client=client,
        spark=spark,
    )
    logging.basicConfig(stream=sys.stderr, level="WARNING", format="trionet pipeline: %(message)s")
    # PySpark warns at each query about pandas, which is not used here.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    run_job(settings, EventPrinter(as_json=arguments.json))
    return 0


def _settings(given: Sequence[str]) -> dict[str, str]:
    settings = {}
    for text in given:
        key, separator, value = text.partition("=")
        if not separator or not key.strip():
            raise ConfigError(f"--set {text}: must have the form KEY=VALUE")
        settings[key.strip()] = value.strip()
    return settings


def check_environment() -> None:
    """Check that Spark can be started.

    Raises:
        ConfigError: PySpark, a dependency of PySpark, or Java is missing; the message says how to
            install it.
    """
    missing = [name for name in _REQUIRED if find_spec(name) is None]
    if missing:
        raise ConfigError(f"{', '.join(missing)} not found: pip install 'trionet[pipeline]'")
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
        raise argparse.ArgumentTypeError(
            f"invalid duration {text!r}: expected a number followed by ms, s, m or h, such as 90s"
        )
    return float(found[1]) * _UNITS[found[2]]


def positive(text: str) -> int:
    """Parse a positive integer."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(
            f"invalid number {text!r}: expected an integer of at least 1"
        )
    return int(text)
