"""How much load there is to be, from the options that all benchmarks have."""

from __future__ import annotations

import argparse
import math
from typing import NamedTuple

DEFAULT_SECONDS = 10.0


class Plan(NamedTuple):
    """How much there is to do.

    Attributes:
        records_max: no more than so many; infinity for no limit.
        seconds_max: no longer than so many seconds.
        rate: so many a second; 0 for as many as there can be.
    """

    records_max: float = math.inf
    seconds_max: float = math.inf
    rate: float = 0.0


def add_plan_arguments(parser: argparse.ArgumentParser, things: str) -> None:
    """Describe the options; ``things`` is what is counted."""
    group = parser.add_argument_group("load")
    group.add_argument(
        f"--{things}",
        dest="records_max",
        type=positive_int,
        metavar="N",
        help=f"end after N {things}",
    )
    group.add_argument(
        "--duration", type=positive_float, metavar="SECONDS", help="end after so long"
    )


def add_rate_argument(parser: argparse.ArgumentParser, things: str) -> None:
    """Describe ``--throughput``."""
    parser.add_argument(
        "--throughput",
        type=positive_float,
        metavar="N",
        help=f"N {things} a second (default: as many as there can be); latencies are measured from "
        "when each is due",
    )


def plan_of(arguments: argparse.Namespace, *, seconds: float = DEFAULT_SECONDS) -> Plan:
    """What the options ask for.

    Args:
        arguments: with what :func:`add_plan_arguments` describes.
        seconds: how long it takes if neither a number nor a duration was given.
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
    """A whole number from 1 on, of a command line."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more, not {text}")
    return number


def natural_int(text: str) -> int:
    """A whole number from 0 on, of a command line."""
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"must be 0 or more, not {text}")
    return number


def positive_float(text: str) -> float:
    """A number above 0, of a command line."""
    number = float(text)
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number above 0, not {text}")
    return number
