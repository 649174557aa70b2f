"""`python3 tests faults [--seconds N] [--seed N]`: disturb a server in every way at once."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from faults.run import FAULTS, QUIET, STORM, Outcome, run

SECONDS = 300.0
# What a healthy client's p99 may be, in those of quiet; said, not asked for: machines are busy.
AIM = 5.0


def main(arguments: list[str]) -> int:
    """Run, report, and say by the exit status whether nothing was wrong."""
    parser = argparse.ArgumentParser(
        prog="python3 tests faults",
        description="Disturb a server in every way at once, while healthy clients measure it.",
    )
    parser.add_argument("--seconds", type=float, default=SECONDS, help="default %(default)s")
    parser.add_argument("--seed", type=int, help="of what is drawn (default: another each time)")
    chosen = parser.parse_args(arguments)
    seed = time.time_ns() % 2**32 if chosen.seed is None else chosen.seed
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        outcome = run(chosen.seconds, seed, Path(folder))
    show(outcome, Console(width=None if sys.stdout.isatty() else 150))
    complaints = list(outcome.complaints())
    print(*complaints, sep="\n")
    print(f"seed {seed}: {len(complaints)} complaints")
    return 1 if complaints else 0


def show(outcome: Outcome, console: Console) -> None:
    """The figures of a run."""
    phases = (QUIET, FAULTS, STORM)
    table = Table(title="healthy clients, in microseconds", title_justify="left")
    for heading in ("kind", "phase"):
        table.add_column(heading, no_wrap=True)
    for heading in ("answers", "p50", "p99", "max", "p99 ÷ quiet"):
        table.add_column(heading, justify="right")
    for kind, quiet in outcome.figures[QUIET].items():
        for phase in phases:
            figures = outcome.figures[phase][kind]
            ratio = figures["p99_us"] / max(1, quiet["p99_us"])
            table.add_row(
                kind if phase == QUIET else "",
                phase,
                *(f"{figures[key]:,.0f}" for key in ("requests", "p50_us", "p99_us", "max_us")),
                f"[{'green' if ratio <= AIM else 'red'}]{ratio:.1f}",
                end_section=phase == STORM,
            )
    console.print(table)
    for phase in phases:
        report = outcome.reports[phase]
        loop, held = report["loop"], report["held"]
        console.print(
            f"{phase}: {report['memory'] / 2**20:.0f} MiB, {held['connections']} connections,"
            f" {len(report['descriptors'])} descriptors; loop idle {loop['idle_ratio']:.0%},"
            f" pass p99 {loop['lag_p99_us']:,} µs, max {loop['lag_max_us']:,} µs",
            highlight=False,
        )
    storm = outcome.storm
    console.print(
        f"storm: {storm['attempts'] / storm['seconds']:,.0f} attempts/s for"
        f" {storm['seconds']:.0f} s,"
        f" {storm['connected'] / storm['attempts']:.0%} of them connected",
        f"faults: {sum(outcome.happened.values()):,}: {outcome.happened}",
        f"half-open peers {'vanish' if outcome.can_vanish else 'only fall silent: no right to'}",
        f"refused: {outcome.after['quotas']}, without descriptor: {outcome.descriptors_missed}",
        f"closed: {outcome.after['closed']}",
        f"after: {outcome.after['held']}, {outcome.after['tasks']} tasks,"
        f" {len(outcome.after['descriptors'])} descriptors,"
        f" {outcome.growth_bytes / 2**20:+.1f} MiB since the quiet phase",
        sep="\n",
        highlight=False,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
