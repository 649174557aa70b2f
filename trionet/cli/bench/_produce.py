"""``trionet bench produce``: produce records as fast as possible, or at a given rate."""

from __future__ import annotations

import argparse
from pathlib import Path

from trionet.errors import ConfigError

from ..clients._connection import (
    SERVERS,
    add_connection_arguments,
    client_settings,
    logging_to_stderr,
)
from ._finish import add_result_arguments, finish
from ._payloads import Payloads, payloads_of, random_payloads
from ._plan import add_plan_arguments, add_rate_argument, natural_int, plan_of, positive_int

RECORD_BYTES = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    parser.description = (
        "Write records to a topic of any Kafka cluster and time each until it is acknowledged. "
        "Without --records and --duration, run for ten seconds; Ctrl-C stops with the results so "
        "far. The exit status is 1 if a record was not written."
    )
    parser.add_argument("topic", metavar="TOPIC", help="topic to write to")
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--record-size",
        type=natural_int,
        default=RECORD_BYTES,
        metavar="BYTES",
        help=f"size of the values, which are random letters (default: {RECORD_BYTES})",
    )
    what.add_argument(
        "--payload-file", metavar="FILE", help="use the values in this file, repeatedly"
    )
    parser.add_argument(
        "--payload-delimiter",
        default="\\n",
        metavar="TEXT",
        help="delimiter of the values in the file (default: \\n)",
    )
    parser.add_argument(
        "-p", "--partition", type=natural_int, metavar="N", help="write only to this partition"
    )
    add_plan_arguments(parser, "records")
    add_rate_argument(parser, "records")
    parser.add_argument(
        "--warmup-records",
        type=positive_int,
        default=0,
        metavar="N",
        help="write N records before measuring",
    )
    add_result_arguments(parser, has_metrics=True)
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status."""
    with logging_to_stderr(arguments):
        return _run(arguments)


def _run(arguments: argparse.Namespace) -> int:
    from trionet.client.config._keys import PRODUCER_KEYS

    from ._produce_load import ProduceLoad, Target

    payloads = _payloads(arguments)
    settings = client_settings(arguments, PRODUCER_KEYS)
    target = Target(
        servers=settings.pop(SERVERS),
        settings=settings,
        topic=arguments.topic,
        partition=arguments.partition,
    )
    load = ProduceLoad(
        target,
        payloads,
        arguments.warmup_records,
        with_metrics=arguments.print_metrics,
    )
    return finish(arguments, "records", plan_of(arguments), load.run)


def _payloads(arguments: argparse.Namespace) -> Payloads:
    if arguments.payload_file is None:
        return random_payloads(arguments.record_size)
    path = Path(arguments.payload_file)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"--payload-file {path}: {error.strerror}") from error
    delimiter = arguments.payload_delimiter.encode().decode("unicode_escape").encode()
    found = payloads_of(content, delimiter) if delimiter else None
    if found is None:
        raise ConfigError(f"--payload-file {path}: the file contains no values")
    return found
