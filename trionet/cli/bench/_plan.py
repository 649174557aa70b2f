"""The limits and the rate of a run, given by options common to all benchmarks."""

from __future__ import annotations

import argparse
import math
from typing import NamedTuple

DEFAULT_SECONDS = 10.0


class Plan(NamedTuple):
    """Limits and rate of a run.

    Attributes:
        records_max: the maximum number of records; infinity for no limit.
        seconds_max: the maximum duration in seconds; infinity for no limit.
        rate: the number of records per second; 0 for no limit.
    """

    records_max: float = math.inf
    seconds_max: float = math.inf
    rate: float = 0.0


def add_plan_arguments(parser: argparse.ArgumentParser, things: str) -> None:
    """Add the options that limit a run, where ``things`` is a plural noun such as ``records``."""
    group = parser.add_argument_group("load")
    group.add_argument(
        f"--{things}",
        dest="records_max",
        type=positive_int,
        metavar="N",
        help=f"stop after N {things}",
    )
    group.add_argument(
        "--duration", type=positive_float, metavar="SECONDS", help="stop after this time"
    )


def add_rate_argument(parser: argparse.ArgumentParser, things: str) -> None:
    """Add ``--throughput``."""
    parser.add_argument(
        "--throughput",
        type=positive_float,
        metavar="N",
        help=f"limit to N {things} per second (default: unlimited); latency is measured from when "
        "each is due",
    )


def plan_of(arguments: argparse.Namespace, *, seconds: float = DEFAULT_SECONDS) -> Plan:
    """Return the plan given by the options.

    Args:
        arguments: the arguments parsed with :func:`add_plan_arguments`.
        seconds: the default duration, used if neither a count nor a duration was given.
    """
    records: int | None = arguments.records_max
    duration: float | None = arguments.duration
    if records is None and duration is None:
        duration = seconds
    return Plan(
        records_max=math.inf if records is None else records,
        seconds_max=math.inf if duration is None else duration,
        rate=getattr(arguments, "throughput", None) or 0.0,
    )


def positive_int(text: str) -> int:
    """Parse an integer of at least 1, for argparse."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {text}")
    return number


def natural_int(text: str) -> int:
    """Parse an integer of at least 0, for argparse."""
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"must be at least 0, not {text}")
    return number


def positive_float(text: str) -> float:
    """Parse a positive number, for argparse."""
    number = float(text)
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number above 0, not {text}")
    return number
