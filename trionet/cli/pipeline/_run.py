"""``trionet pipeline run``: the job, until Ctrl-C or SIGTERM, or until all is read."""

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

#: PySpark refuses to hand batches of Arrow to a function where there is no pandas.
_NEEDED: Final = ("pyspark", "pyarrow", "numpy", "pandas")
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command's arguments to ``parser``."""
    parser.description = (
        "Read a request log and write, for each minute, rates, bytes and percentiles by API, "
        "client and listener, top talkers, errors, closed connections, quotas and anomalies, to a "
        "topic and as Parquet to a folder. A minute is written once, when the watermark has passed "
        "its end. SIGTERM or Ctrl-C ends the job; started again, it goes on where it was."
    )
    _add_places(parser)
    parser.add_argument(
        "--watermark",
        type=duration,
        default="1m",
        metavar="TIME",
        help="how long after its end a minute waits for records that come late, as in 90s, 2m or "
        "1h (default: 1m)",
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
        help="how many records to read at once at most (default: all there are)",
    )
    parser.add_argument("--available-now", action="store_true", help="read what is there, and end")
    parser.add_argument(
        "--allow-data-loss",
        action="store_true",
        help="go on where records were deleted before they were read; without, that is an error",
    )
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="a setting of the client (kafka.security.protocol=SSL) or of Spark "
        "(spark.executor.memory=4g); may be given many times",
    )
    parser.add_argument(
        "--json", action="store_true", help="tell what happens as JSON lines on standard output"
    )


def _add_places(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--bootstrap-server",
        default="127.0.0.1:9092",
        metavar="HOST:PORT[,...]",
        help="brokers to begin with (default: 127.0.0.1:9092)",
    )
    parser.add_argument(
        "--topic", required=True, metavar="NAME", help="the broker's request.log.topic"
    )
    parser.add_argument(
        "--results-topic",
        metavar="NAME",
        help="where the results go; made if it is missing (default: the topic's name and -results)",
    )
    parser.add_argument(
        "--folder",
        required=True,
        metavar="PATH",
        help="where the results go as Parquet; any path that Spark can write",
    )
    parser.add_argument(
        "--checkpoint",
        metavar="PATH",
        help="where the job keeps how far it is, and minutes that are not over (default: "
        "_checkpoint in the folder)",
    )
    parser.add_argument(
        "--master",
        default="local[*]",
        metavar="URL",
        help="the Spark that does the work (default: local[*], this machine)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code: 0 ended, 1 failed, 2 wrong settings or no Spark."""
    check_environment()
    from trionet.spark.pipeline.run._job import run_job
    from trionet.spark.pipeline.run._settings import JobSettings, split

    from ._pipeline_output import Teller

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
    # A warning of PySpark at each query, about a library that nothing here uses.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    run_job(settings, Teller(as_json=arguments.json))
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
    """Find out, before anything is started, whether Spark can be.

    Raises:
        ConfigError: PySpark, what it needs, or Java is missing; the message says what to do.
    """
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise ConfigError(f"{', '.join(missing)} not found: pip install 'trionet[pipeline]'")
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java", path=os.path.join(home, "bin") if home else None) is None:
        where = f"in JAVA_HOME, {home}" if home else "on the PATH"
        raise ConfigError(
            f"no java {where}: Spark needs Java 17 or newer, as of apt-get install "
            "openjdk-17-jre-headless; or set JAVA_HOME"
        )


def duration(text: str) -> float:
    """Seconds, of a text such as ``90s``."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a time: a number with ms, s, m or h behind it, as in 90s"
        )
    return float(found[1]) * _UNITS[found[2]]


def positive(text: str) -> int:
    """A whole number from 1 on."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return int(text)
