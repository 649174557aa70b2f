"""`python3 tests bench NAME [OPTION]...`: one benchmark, or several one after another."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from datetime import UTC, datetime
from types import ModuleType

from rich.console import Console

from bench.measured import Measured
from bench.options import Options, add_options
from bench.page import has_place, put_on_page

BENCHMARKS = (
    "echo",
    "processors",
    "tls",
    "idle",
    "apis",
    "throughput",
    "latency",
    "join",
    "start",
    "folders",
    "partitions",
    "neighbour",
    "compaction",
    "fixture",
    "lag",
    "times",
    "codecs",
    "imports",
    "requests",
    "jafka",
    "records",
    "produce",
    "consume",
    "awaited",
    "commits",
    "join-client",
    "memory",
    "pipes",
    "help",
    "spark",
    "spark-decode",
    "spark-scale",
    "request-log",
    "detection",
    "dashboard",
)


def main(arguments: list[str]) -> None:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(
        prog="python3 tests bench",
        description="Measure trionet beside its peers, all on this machine, in one go.",
    )
    commands = parser.add_subparsers(required=True, metavar="NAME", dest="name")
    modules: dict[str, ModuleType] = {}
    for name in BENCHMARKS:
        module = modules[name] = importlib.import_module(f"bench.{name.replace('-', '_')}")
        summary = (module.__doc__ or "").splitlines()[0]
        command = commands.add_parser(name, help=summary, description=module.__doc__)
        add_options(command, module.RUNS, module.SECONDS)
    chosen = parser.parse_args(arguments)
    if chosen.page and not has_place(chosen.name):
        parser.error(f"--page: docs/performance.md has no place for {chosen.name}")
    options = Options(chosen.runs, chosen.seconds, chosen.sides, chosen.cases)
    measured: Measured = modules[chosen.name].measure(options)
    if not measured.runs and not measured.skipped:
        parser.error(f"{chosen.name} has no such case: {', '.join(chosen.cases or chosen.sides)}")
    if chosen.page:
        put_on_page(chosen.name, measured, datetime.now(UTC).date())
    if chosen.json:
        print(json.dumps(measured.as_values(), indent=1))
    elif chosen.markdown or chosen.page:
        print(measured.as_markdown())
    else:
        # A pipe has no width: 80 columns would wrap the figures.
        measured.show(Console(width=None if sys.stdout.isatty() else 150))


if __name__ == "__main__":
    main(sys.argv[1:])
