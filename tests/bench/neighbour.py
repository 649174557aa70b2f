"""What a client waits beside one that creates 100,000 groups, transactional ids or topics.

An honest client produces a record and fetches it, again and again, first alone and then while
another process creates what the broker keeps, as fast as it can over one connection. "quiet" and
"beside" are what 1 % of its requests waited for, and "wait" is the longest of them beside the
other; "kept" is by how much the broker has grown for each of what was created.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from subprocess import Popen

import trio

from bench.creator import REQUESTS, TOPIC
from bench.measured import Figure, Measured
from bench.options import Options
from support.calls import batch, create_topic, fetch, produce
from support.client import Client, connect
from support.processes import SAME_TRIONET, first_line, memory_bytes, running
from support.trionet_process import trionet_broker_process

RUNS = 1
SECONDS = 5.0

COUNT = 100_000
#: A new group has its first generation at once.
SETTINGS = {"group.initial.rebalance.delay.ms": "0"}
PAUSE_SECONDS = 0.002
#: The broker's first requests take longer, and say nothing.
WARM_UP_SECONDS = 2.0


def measure(options: Options) -> Measured:
    """Run the benchmark; `--seconds` is for how long the client is measured alone."""
    measured = Measured(
        f"requests beside a client that creates {COUNT:,}",
        (
            Figure("ratio", "beside ÷ quiet", "{:.2f}".format),
            Figure("quiet", "quiet p99, ms", "{:.2f}".format),
            Figure("beside", "beside p99, ms", "{:.2f}".format),
            Figure("wait", "wait, ms", "{:.1f}".format),
            Figure("rate", "created/s"),
            Figure("kept", "kept, B"),
        ),
    )
    for case in REQUESTS:
        for side in ("trionet memory", "trionet disk"):
            if options.wants_case(case) and options.wants(side):
                for _ in range(options.runs):
                    run = _run(case, options.seconds, is_on_disk=side.endswith("disk"))
                    measured.add(case, side, run)
    return measured


def _run(case: str, seconds: float, *, is_on_disk: bool) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="trionet-bench-") as name:
        folder = Path(name) / "data" if is_on_disk else None
        with trionet_broker_process(folder, settings=SETTINGS) as (address, broker):
            command = [sys.executable, "-m", "bench.creator", address, case, str(COUNT)]
            with running(command, env=SAME_TRIONET) as creator:
                first_line(creator)
                before = memory_bytes(broker.pid)
                waits: list[list[float]] = [[], [], []]
                took = trio.run(_ask_beside, address, creator, seconds, waits)
                grown = memory_bytes(broker.pid) - before
    _, quiet, beside = waits
    return {
        "ratio": _p99(beside) / _p99(quiet),
        "quiet": 1000 * _p99(quiet),
        "beside": 1000 * _p99(beside),
        "wait": 1000 * max(beside),
        "rate": COUNT / took,
        "kept": grown / COUNT,
    }


async def _ask_beside(
    address: str, creator: Popen[bytes], seconds: float, waits: Sequence[list[float]]
) -> float:
    """Collect the waits while warming up, alone, and beside the creator; return its seconds."""
    warm_up, quiet, beside = waits
    async with connect(address) as client, trio.open_nursery() as nursery:
        await create_topic(client, TOPIC)
        for into, length in ((warm_up, WARM_UP_SECONDS), (quiet, seconds)):
            end = time.perf_counter() + length
            while time.perf_counter() < end:
                await _ask(client, into)
        begin = time.perf_counter()
        assert creator.stdin is not None
        creator.stdin.write(b"\n")
        creator.stdin.flush()
        nursery.start_soon(_ask_always, client, beside)
        await trio.to_thread.run_sync(first_line, creator)
        nursery.cancel_scope.cancel()
    return time.perf_counter() - begin


async def _ask_always(client: Client, waits: list[float]) -> None:
    while True:
        await _ask(client, waits)


async def _ask(client: Client, waits: list[float]) -> None:
    begin = time.perf_counter()
    offset = (await produce(client, TOPIC, batch(b"value"))).base_offset
    middle = time.perf_counter()
    await fetch(client, TOPIC, offset)
    waits += (middle - begin, time.perf_counter() - middle)
    await trio.sleep(PAUSE_SECONDS)


def _p99(waits: list[float]) -> float:
    return sorted(waits)[-1 - len(waits) // 100]
