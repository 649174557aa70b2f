"""Faults found by the pipeline in logs with planted ones, and what it finds in logs without.

Each run takes two new logs, from a seed of its own: one of twelve hours with 20 faults of different
kinds, and one of ten hours without any, but with jobs, restarts and pauses. No constant of the
detection was chosen on these seeds. Runs are medians; `--json` has each.
"""

from __future__ import annotations

from typing import Final

from bench.measured import OURS, Figure, Measured
from bench.options import Options
from spark.pipeline.detected import incidents, score, signals_of
from spark.pipeline.labelled_faults import faulty_log, length_of, planted
from spark.pipeline.labelled_log import clean_log

RUNS = 3
#: Of the log without faults.
SECONDS = 36_000.0
#: The seed of the first run; seeds below were used to choose constants.
FIRST_SEED: Final = 101

_CASE: Final = "20 faults, and hours without"


def measure(options: Options) -> Measured:
    """Run the benchmark."""
    measured = Measured(
        "incidents found in labelled request logs",
        (
            Figure("recall", "faults found within two minutes", "{:.2f}".format),
            Figure("named", "with their cause", "{:.2f}".format),
            Figure("beside", "false incidents an hour, beside faults", "{:.2f}".format),
            Figure("clean", "without faults", "{:.2f}".format),
        ),
    )
    minutes = int(options.seconds / 60)
    for run in range(options.runs):
        seed = FIRST_SEED + run
        told = incidents(signals_of(clean_log(seed, minutes)), minutes)
        measured.add(_CASE, OURS, {**_faulty(seed), "clean": len(told) / (minutes / 60)})
    return measured


def _faulty(seed: int) -> dict[str, float]:
    faults = planted(seed)
    minutes = length_of(faults)
    told = score(faults, incidents(signals_of(faulty_log(seed, faults, minutes)), minutes))
    return {
        "recall": len(told.found) / len(faults),
        "named": len(told.named) / len(faults),
        "beside": len(told.false) / (minutes / 60),
    }
