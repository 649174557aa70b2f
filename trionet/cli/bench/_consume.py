"""``trionet bench consume``: read records as fast as can be."""

from __future__ import annotations

import argparse
import math

from trionet.errors import ConfigError

from ..clients._connection import (
    SERVERS,
    add_connection_arguments,
    client_settings,
    logging_to_stderr,
)
from ._finish import add_result_arguments, finish
from ._plan import add_plan_arguments, natural_int, plan_of, positive_float

TIMEOUT_SECONDS = 10.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command's arguments to ``parser``."""
    parser.description = (
        "Read a topic of any Kafka cluster. Without --records and --duration it reads what is "
        "there when it begins; Ctrl-C ends it with the results so far. Latencies are from a "
        "record's timestamp until it is received: they mean something where records are written "
        "meanwhile (--from-end), by a clock that agrees with this one. The exit status is 1 if "
        "there were fewer records than --records, or than the topic has."
    )
    parser.add_argument("topic", metavar="TOPIC", help="what to read")
    parser.add_argument(
        "-p", "--partition", type=natural_int, metavar="N", help="read this one alone"
    )
    parser.add_argument(
        "-G",
        "--group",
        metavar="NAME",
        help="read as a member of this group, which begins where it has committed, and commits",
    )
    parser.add_argument(
        "--from-end", action="store_true", help="read only what is written from now on"
    )
    add_plan_arguments(parser, "records")
    parser.add_argument(
        "--timeout",
        type=positive_float,
        default=TIMEOUT_SECONDS,
        metavar="SECONDS",
        help="end when nothing has come for so long (default: 10)",
    )
    add_result_arguments(parser, has_metrics=True)
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit status."""
    with logging_to_stderr(arguments):
        return _run(arguments)


def _run(arguments: argparse.Namespace) -> int:
    from trionet.client.config._keys import CONSUMER_KEYS

    from ._consume_load import Consuming, Source

    settings = client_settings(arguments, CONSUMER_KEYS)
    if arguments.group is not None:
        settings["group.id"] = arguments.group
    is_group = "group.id" in settings
    if is_group and arguments.partition is not None:
        raise ConfigError("a group divides all partitions of a topic; leave out --partition")
    settings.setdefault("allow.auto.create.topics", "false")
    # A group begins where it is; who has none begins as it is told.
    settings.setdefault("auto.offset.reset", "latest" if arguments.from_end else "earliest")
    is_bounded = arguments.records_max is not None or arguments.duration is not None
    source = Source(
        servers=settings.pop(SERVERS),
        settings=settings,
        topic=arguments.topic,
        partition=arguments.partition,
        at_end=arguments.from_end,
        until_end=not (is_bounded or arguments.from_end or is_group),
        idle_seconds_max=arguments.timeout,
    )
    consuming = Consuming(source, wants_metrics=arguments.print_metrics)
    plan = plan_of(arguments, seconds=math.inf)
    return finish(arguments, "records", plan, consuming.run)
