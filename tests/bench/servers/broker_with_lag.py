"""A trionet broker that reports, line by line, how long its loop was held since the last line.

Arguments: its data directory and segment size. It prints its bootstrap server, then for each line
on stdin one line of JSON: the loop's own monitor, and a probe that wants to run every millisecond.
"""

from __future__ import annotations

import json
import sys

import trio

import trionet
from trionet.metrics._loop import LoopMonitor
from trionet.metrics._rates import Histogram

PROBE_SECONDS = 0.001


async def _probe(late: Histogram) -> None:
    while True:
        wanted = trio.current_time() + PROBE_SECONDS
        await trio.sleep_until(wanted)
        late.record(int((trio.current_time() - wanted) * 1e6))


async def _main(folder: str, segment_bytes: str) -> None:
    settings = {"log.dirs": folder, "log.segment.bytes": segment_bytes}
    late = Histogram()
    async with trionet.open_broker(settings) as broker, trio.open_nursery() as nursery:
        nursery.start_soon(_probe, late)
        print(broker.bootstrap_servers, flush=True)
        with LoopMonitor() as monitor:
            async for _ in trio.wrap_file(sys.stdin):
                loop = monitor.statistics()
                figures = {
                    "p99_us": loop.lag_p99_us,
                    "max_us": loop.lag_max_us,
                    "probe_p99_us": late.quantile(0.99),
                    "probe_max_us": late.maximum,
                }
                print(json.dumps(figures), flush=True)
                monitor.clear()
                late.clear()
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    trio.run(_main, sys.argv[1], sys.argv[2])
