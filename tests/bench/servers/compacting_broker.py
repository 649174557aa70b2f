"""A trionet broker that compacts a topic on demand, and reports how long its loop was held.

Arguments: its data directory. It prints its bootstrap server, then answers each line on stdin by
one line of JSON: `clear` forgets what was measured so far; `compact TOPIC` begins to clean;
`lag` is what held the loop since `clear`; `wait` answers when the cleaning has ended.
"""

from __future__ import annotations

import json
import sys

import trio

import trionet
from trionet.metrics._loop import LoopMonitor
from trionet.metrics._rates import Histogram

PROBE_SECONDS = 0.001
SETTINGS = {"log.cleaner.enable": "false"}


async def _probe(late: Histogram) -> None:
    while True:
        wanted = trio.current_time() + PROBE_SECONDS
        await trio.sleep_until(wanted)
        late.record(int((trio.current_time() - wanted) * 1e6))


class _Compaction:
    """A cleaning in the background."""

    def __init__(self) -> None:
        self.ended = trio.Event()
        self.figures: dict[str, float] = {}

    async def run(self, broker: trionet.Broker, topic: str) -> None:
        begin = trio.current_time()
        await broker.compact(topic)
        self.figures = {"seconds": trio.current_time() - begin}
        self.ended.set()


async def _main(folder: str) -> None:
    late = Histogram()
    compaction = _Compaction()
    settings = {**SETTINGS, "log.dirs": folder}
    async with trionet.open_broker(settings) as broker, trio.open_nursery() as nursery:
        nursery.start_soon(_probe, late)
        print(broker.bootstrap_servers, flush=True)
        with LoopMonitor() as monitor:
            async for line in trio.wrap_file(sys.stdin):
                command, _, topic = line.strip().partition(" ")
                figures: dict[str, float] = {}
                if command == "clear":
                    monitor.clear()
                    late.clear()
                elif command == "compact":
                    nursery.start_soon(compaction.run, broker, topic)
                elif command == "lag":
                    loop = monitor.statistics()
                    figures = {"lag_p99_us": loop.lag_p99_us, "lag_max_us": loop.lag_max_us}
                    figures["probe_p99_us"] = late.quantile(0.99)
                else:
                    await compaction.ended.wait()
                    figures = compaction.figures
                print(json.dumps(figures), flush=True)
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    trio.run(_main, sys.argv[1])
