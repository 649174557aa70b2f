"""Faults found by the pipeline in logs with planted ones, and what it finds in logs without.

Each run takes three new logs, from a seed of its own: one of twelve hours with 20 faults of
different kinds, one with 20 in ten pairs, in which the second begins while the first lasts, or a
few minutes later, and one of ten hours without any, but with jobs, restarts and pauses. A fault is
found by its cause if an incident says from its first two minutes on what it is. No constant of the
detection was chosen on these seeds. Figures are of all runs together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from bench.measured import OURS, Figure, Measured
from bench.options import Options
from spark.pipeline.detected import incidents, score, signals_of
from spark.pipeline.labelled_faults import (
    Fault,
    faulty_log,
    length_of,
    planted,
    planted_in_pairs,
)
from spark.pipeline.labelled_log import clean_log

RUNS = 10
#: Of the log without faults.
SECONDS = 36_000.0
#: The seed of the first run; seeds below were used to choose constants.
FIRST_SEED: Final = 101

_CASES: Final[dict[str, Callable[[int], Sequence[Fault]]]] = {
    "20 faults, one after the other": planted,
    "20 faults in pairs": planted_in_pairs,
}


def measure(options: Options) -> Measured:
    """Run the benchmark."""
    measured = Measured(
        f"incidents found in labelled request logs of {options.runs} seeds",
        (
            Figure("recall", "faults found within two minutes", "{:.2f}".format),
            Figure("named", "with their cause", "{:.2f}".format),
            Figure("incidents", "incidents per fault", "{:.2f}".format),
            Figure("beside", "false incidents an hour, beside faults", "{:.2f}".format),
            Figure("clean", "without faults", "{:.2f}".format),
        ),
    )
    minutes = int(options.seconds / 60)
    seeds = range(FIRST_SEED, FIRST_SEED + options.runs)
    clean = sum(len(incidents(signals_of(clean_log(seed, minutes)), minutes)) for seed in seeds)
    for case, plant in _CASES.items():
        found = [_faulty(seed, plant(seed)) for seed in seeds]
        means = {name: sum(each[name] for each in found) / len(found) for name in found[0]}
        per_hour = clean / (len(seeds) * minutes / 60)
        measured.add(case, OURS, {**means, "clean": per_hour})
    return measured


def _faulty(seed: int, faults: Sequence[Fault]) -> dict[str, float]:
    minutes = length_of(faults)
    told = score(faults, incidents(signals_of(faulty_log(seed, faults, minutes)), minutes))
    return {
        "recall": len(told.found) / len(faults),
        "named": len(told.named) / len(faults),
        "incidents": told.incidents / len(faults),
        "beside": len(told.false) / (minutes / 60),
    }
