"""``trionet bench consume``: consume records as fast as possible."""

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
    """Add the command's arguments to ``parser``."""
    parser.description = (
        "Read a topic of any Kafka cluster. Without --records and --duration, read the records "
        "that exist at the start; Ctrl-C stops with the results so far. Latency is measured from a "
        "record's timestamp until it is received, which is meaningful only for records written "
        "during the run (--from-end) with a synchronised clock. The exit status is 1 if fewer "
        "records were read than --records or than the topic has."
    )
    parser.add_argument("topic", metavar="TOPIC", help="topic to read")
    parser.add_argument(
        "-p", "--partition", type=natural_int, metavar="N", help="read only this partition"
    )
    parser.add_argument(
        "-G",
        "--group",
        metavar="NAME",
        help="join this group, start at its committed offsets, and commit",
    )
    parser.add_argument(
        "--from-end", action="store_true", help="read only records written from now on"
    )
    add_plan_arguments(parser, "records")
    parser.add_argument(
        "--timeout",
        type=positive_float,
        default=TIMEOUT_SECONDS,
        metavar="SECONDS",
        help="stop when no record has arrived for this long (default: 10)",
    )
    add_result_arguments(parser, has_metrics=True)
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status."""
    with logging_to_stderr(arguments):
        return _run(arguments)


def _run(arguments: argparse.Namespace) -> int:
    from trionet.client.config._keys import CONSUMER_KEYS

    from ._consume_load import ConsumeLoad, Source

    settings = client_settings(arguments, CONSUMER_KEYS)
    if arguments.group is not None:
        settings["group.id"] = arguments.group
    is_group = "group.id" in settings
    if is_group and arguments.partition is not None:
        raise ConfigError(
            "--partition cannot be combined with a group, which assigns the partitions"
        )
    settings.setdefault("allow.auto.create.topics", "false")
    # Only for group members without a committed offset; others seek explicitly.
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
    load = ConsumeLoad(source, with_metrics=arguments.print_metrics)
    plan = plan_of(arguments, seconds=math.inf)
    return finish(arguments, "records", plan, load.run)
