"""`python -m reports.writer FOLDER`: a job without Spark that goes on until it is killed."""

from __future__ import annotations

import os
import sys
from itertools import count
from pathlib import Path

import trio

from spark.pipeline.light_job import LightJob
from trionet.spark.pipeline.results._cuts import CUTS, Cut

#: Between two micro-batches, for the reports beside it.
_PAUSE_SECONDS = 0.02


async def main(folder: Path) -> None:
    """Go on where the job before has been killed."""
    cuts = folder / CUTS
    latest = Cut.latest(os.listdir(cuts)) if cuts.exists() else None
    job = LightJob(folder, lambda _: None, keep_days=2)
    # As Spark does it: the last one is repeated if it was killed before that was known.
    for batch in count(max(0, latest.end - 1) if latest else 0):
        job.write(batch)
        await trio.sleep(_PAUSE_SECONDS)


if __name__ == "__main__":
    trio.run(main, Path(sys.argv[1]))
