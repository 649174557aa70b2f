"""Creating 100,000 partitions: what the last 10,000 cost beside the first, and what others wait.

Ten topics of 10,000 partitions, or as many topics of one partition, are created one after another.
"first" and "last" are the processor time that the broker takes for the first and the last 10,000;
"wait" is the longest that a small request on another connection waited for its response meanwhile,
and "p99" what 1 % of these requests waited for.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import trio

from bench.measured import Figure, Measured
from bench.options import Options
from support.calls import create_topic
from support.client import Client, connect
from support.trionet_process import trionet_broker_process
from trionet.protocol.messages.api_versions import ApiVersionsRequest
from trionet.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest

RUNS = 1
SECONDS = 0.0

ROUNDS, PARTITIONS = 10, 10_000
#: How many topics of one partition a request creates.
TOPICS_AT_ONCE = 500
PAUSE_SECONDS = 0.002

Create = Callable[[Client, int], Awaitable[None]]


def measure(options: Options) -> Measured:
    """Run the benchmark; `--seconds` has no meaning here."""
    measured = Measured(
        f"{ROUNDS} x {PARTITIONS:,} partitions, created one round after another",
        (
            Figure("ratio", "last ÷ first", "{:.2f}".format),
            Figure("first", "first, s", "{:.2f}".format),
            Figure("last", "last, s", "{:.2f}".format),
            Figure("wait", "wait, ms", "{:.1f}".format),
            Figure("p99", "p99, ms", "{:.1f}".format),
        ),
    )
    for case, create in (("topics of 10,000", _large_topic), ("topics of 1", _small_topics)):
        for side in ("trionet memory", "trionet disk"):
            if options.wants_case(case) and options.wants(side):
                for _ in range(options.runs):
                    measured.add(case, side, _run(create, is_on_disk=side.endswith("disk")))
    return measured


def _run(create: Create, *, is_on_disk: bool) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="trionet-bench-") as name:
        folder = Path(name) / "data" if is_on_disk else None
        with trionet_broker_process(folder) as (address, process):
            seconds, waits = trio.run(_rounds, address, process.pid, create)
    waits.sort()
    return {
        "ratio": seconds[-1] / seconds[0],
        "first": seconds[0],
        "last": seconds[-1],
        "wait": 1000 * waits[-1],
        "p99": 1000 * waits[-len(waits) // 100],
    }


async def _rounds(address: str, pid: int, create: Create) -> tuple[list[float], list[float]]:
    """The processor time of each round, and the waits of the requests beside them, in seconds."""
    seconds: list[float] = []
    waits: list[float] = []
    async with (
        connect(address) as client,
        connect(address) as other,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(_ask, other, waits)
        for number in range(ROUNDS):
            before = _cpu_seconds(pid)
            await create(client, number)
            seconds.append(_cpu_seconds(pid) - before)
        nursery.cancel_scope.cancel()
    return seconds, waits


async def _ask(client: Client, waits: list[float]) -> None:
    while True:
        begin = time.perf_counter()
        await client.call(ApiVersionsRequest(), 0)
        waits.append(time.perf_counter() - begin)
        await trio.sleep(PAUSE_SECONDS)


async def _large_topic(client: Client, number: int) -> None:
    await create_topic(client, f"t{number}", PARTITIONS)


async def _small_topics(client: Client, number: int) -> None:
    for first in range(0, PARTITIONS, TOPICS_AT_ONCE):
        topics = [
            CreatableTopic(name=f"t{number}.{each}", num_partitions=1, replication_factor=1)
            for each in range(first, first + TOPICS_AT_ONCE)
        ]
        response = await client.call(CreateTopicsRequest(topics=topics), 7)
        if any(each.error_code for each in response.topics):
            raise RuntimeError("a topic was not created")


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
