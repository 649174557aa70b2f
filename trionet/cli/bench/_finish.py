"""Runs a benchmark and prints its result."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from trionet._util._text import counted

from ..terminal._output import TEXT, add_format_arguments, print_message, stdout, write
from ._plan import Plan

if TYPE_CHECKING:
    from ._result import Result
    from ._run import Run

#: The default interval between progress lines.
INTERVAL_SECONDS = 1.0


def add_result_arguments(parser: argparse.ArgumentParser, *, has_metrics: bool) -> None:
    """Add the options that control the output of results."""
    group = parser.add_argument_group("results")
    group.add_argument(
        "--reporting-interval",
        type=_interval,
        default=INTERVAL_SECONDS,
        metavar="SECONDS",
        help="interval of progress lines on standard error; 0 for none (default: 1)",
    )
    if has_metrics:
        group.add_argument(
            "--print-metrics", action="store_true", help="print the client's metrics, too"
        )
    add_format_arguments(parser)


def finish(
    arguments: argparse.Namespace,
    things: str,
    plan: Plan,
    work: Callable[[Run], Awaitable[Result]],
) -> int:
    """Run the benchmark and print the result.

    Returns:
        The exit status: 0 on success, 1 if any operation failed or the result is incomplete, or
        128 + N if signal N ended the run.
    """
    import trio

    return trio.run(_finish, arguments, things, plan, work)


async def _finish(
    arguments: argparse.Namespace,
    things: str,
    plan: Plan,
    work: Callable[[Run], Awaitable[Result]],
) -> int:
    from ._run import SIGNAL_STATUS, Run, is_unicode, run_load

    run = Run(things, plan, arguments.reporting_interval)
    result = await run_load(run, work)
    if result is not None:
        out = stdout()
        if arguments.format == TEXT:
            lines = result.lines(is_unicode=is_unicode(sys.stdout.encoding))
            out.writelines(f"{line}\n" for line in lines)
            out.flush()
        else:
            write(arguments.format, result.table(), result.document())
        for note in result.notes:
            print_message(arguments, note)
        if result.tally.failed:
            failed = counted(result.tally.failed, things.removesuffix("s"))
            print_message(arguments, f"{failed} failed: {result.tally.failure}")
    if run.signal:
        return SIGNAL_STATUS + run.signal
    return 0 if result is not None and result.is_complete and not result.tally.failed else 1


def _interval(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"must be at least 0, not {text}")
    return seconds
