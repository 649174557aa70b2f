"""The memory of a producer: what its process had at most, above an interpreter with trio.

A million records of 100 bytes as `produce` sends them, in batches of Kafka's default size.
"""

from __future__ import annotations

import subprocess
import sys

from bench.clients.process import cases, wanted_sides
from bench.clients.task import Task
from bench.measured import Figure, Measured
from bench.options import Options
from bench.produce import SIDES
from bench.topics import topic

RUNS = 1
SECONDS = 1.0
RECORDS = 1_000_000
CASE = "producing"
_BARE = """
import trio
for line in open("/proc/self/status"):
    if line.startswith("VmHWM:"):
        print(line.split()[1])
"""


def measure(options: Options) -> Measured:
    """Run the benchmark; `--seconds` scales the number of records."""
    measured = Measured(
        "memory while producing",
        (
            Figure("above", "above trio alone, MB", "{:,.1f}".format),
            Figure("memory", "in all, MB", lambda value: f"{value / 1e6:,.1f}"),
        ),
    )
    bare = subprocess.run([sys.executable, "-c", _BARE], check=True, capture_output=True)
    bare_bytes = float(bare.stdout) * 1024
    sides = wanted_sides(SIDES, options, measured)
    for broker, _, case in cases([CASE], options, measured):
        for run in range(options.runs):
            for number, side in enumerate(sides):
                name = f"memory-{run}-{number}"
                count = max(1, int(RECORDS * options.seconds) // 1000) * 1000
                task = Task(broker.bootstrap, name, records=count)
                with topic(broker.bootstrap, name):
                    memory = side.run(task)["memory"]
                figures = {"above": (memory - bare_bytes) / 1e6, "memory": memory}
                measured.add(case, side.name, figures)
    return measured
