"""The command line: processor time of a whole process, over one of Python that does nothing.

What a shell waits for before anything is done: help and the version, which load no part of trionet
but the command line itself. The best of each run; bytecode is warm.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import trionet
from bench.measured import OURS, Figure, Measured
from bench.options import Options

RUNS = 3
SECONDS = 3.0
_CASES: Final = ("--help", "--version", "topics --help", "topics list --help", "completion bash")
_ROUND_SECONDS: Final = 0.1  # what one process takes, roughly


def measure(options: Options) -> Measured:
    """Run the benchmark."""
    measured = Measured(
        "the command line, over bare Python",
        (Figure("ms", "ms of processor time", "{:,.1f}".format),),
    )
    wanted = [case for case in _CASES if options.wants_case(case)]
    rounds = max(1, int(options.seconds / _ROUND_SECONDS / max(1, len(wanted) + 1)))
    for _ in range(options.runs):
        bare = min(_seconds("-c", "pass") for _ in range(rounds))
        best = dict.fromkeys(wanted, float("inf"))
        for _ in range(rounds):
            for case in wanted:
                best[case] = min(best[case], _seconds("-m", "trionet", *case.split()))
            bare = min(bare, _seconds("-c", "pass"))
        for case, seconds in best.items():
            measured.add(f"trionet {case}", OURS, {"ms": (seconds - bare) * 1e3})
    return measured


def _seconds(*arguments: str) -> float:
    """What a process takes of the processor."""
    path = str(Path(trionet.__file__).parents[1])
    process = subprocess.Popen(
        [sys.executable, *arguments],
        stdout=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": path},
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(arguments)} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime
