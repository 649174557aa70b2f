"""Starting on much data: 5,000 partitions, a topic of 10,000 segments, 10 GB after a SIGKILL.

"start" is from the start of the process to its ready line, after a clean stop in the first two
cases; "idle" is the share of a core that the broker takes while nobody asks it anything. In the
cases that say so, and after the SIGKILL, the files are thrown out of the page cache before a start,
where the system allows it.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import trio

from bench.measured import Figure, Measured
from bench.options import Options
from support.calls import PRODUCE_BY_NAME, batch, create_topic, produce_request
from support.client import Client, connect
from support.processes import memory_bytes
from support.trionet_process import trionet_broker_process

RUNS = 3
SECONDS = 10.0

TOPICS, PARTITIONS = 50, 100
SEGMENTS = 10_000
# The least that takes one batch of one record, and not two.
SEGMENT_BYTES = 150
GIGABYTES = 10
BATCH_BYTES = 1_000_000
IN_FLIGHT = 8

MANY_PARTITIONS = f"{TOPICS * PARTITIONS:,} partitions"
MANY_SEGMENTS = f"{SEGMENTS:,} segments"
KILLED = f"{GIGABYTES} GB, killed"

_SCANNING = re.compile(r"scanning (\d+) bytes")


def measure(options: Options) -> Measured:
    """Run the benchmark; `--seconds` is how long the idle broker is watched."""
    measured = Measured(
        "a broker on a folder with much in it",
        (
            Figure("start", "start, s", "{:.2f}".format),
            Figure("stop", "stop before, s", "{:.2f}".format),
            Figure("memory", "memory, MB", lambda value: f"{value / 1e6:,.0f}"),
            Figure("idle", "idle, % of a core", "{:.2f}".format),
            Figure("files", "open files"),
            Figure("scanned", "scanned, MB", lambda value: f"{value / 1e6:,.1f}"),
        ),
    )
    for case, make, is_killed in (
        (MANY_PARTITIONS, _partitions, False),
        (MANY_SEGMENTS, _segments, False),
        (KILLED, _gigabytes, True),
    ):
        if options.wants_case(case):
            with tempfile.TemporaryDirectory(prefix="trionet-bench-") as name:
                folder = Path(name) / "data"
                with _stopped(folder, is_killed=is_killed) as (address, stop):
                    trio.run(make, address)
                for _ in range(options.runs):
                    for is_cold in (True,) if is_killed else (False, True):
                        if is_cold:
                            _forget_pages()
                        run = _start(
                            folder, Path(name) / "log", options.seconds, is_killed=is_killed
                        )
                        named = f"{case}, cold" if is_cold else case
                        measured.add(named, "trionet", run | {"stop": stop[-1]})
    return measured


@contextlib.contextmanager
def _stopped(folder: Path, *, is_killed: bool) -> Iterator[tuple[str, list[float]]]:
    """A broker that ends with the block; how many seconds that took, in a list."""
    seconds: list[float] = []
    with trionet_broker_process(folder) as (address, process):
        yield address, seconds
        begin = time.perf_counter()
        if is_killed:
            process.kill()
        else:
            process.terminate()
        process.wait()
        seconds.append(time.perf_counter() - begin)


def _start(folder: Path, log: Path, seconds: float, *, is_killed: bool) -> dict[str, float]:
    """One start; the broker is ended as the one before it was."""
    begin = time.perf_counter()
    with trionet_broker_process(folder, log=log) as (_, process):
        started = time.perf_counter() - begin
        memory = memory_bytes(process.pid)
        before = _cpu_seconds(process.pid)
        time.sleep(seconds)
        idle = (_cpu_seconds(process.pid) - before) / seconds
        files = len(os.listdir(f"/proc/{process.pid}/fd"))
        if is_killed:
            process.kill()
        else:
            process.terminate()
        process.wait()
    scanned = sum(map(int, _SCANNING.findall(log.read_text())))
    return {
        "start": started,
        "memory": memory,
        "idle": 100 * idle,
        "files": files,
        "scanned": scanned,
    }


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _forget_pages() -> None:
    """Make the next start read from the disk, as after a boot; needs root."""
    os.sync()
    with contextlib.suppress(OSError):
        Path("/proc/sys/vm/drop_caches").write_text("1")


async def _partitions(address: str) -> None:
    async with connect(address) as client:
        for number in range(TOPICS):
            await create_topic(client, f"t{number}", PARTITIONS)
        record = batch(b"x" * 100)
        for number in range(TOPICS):
            request = produce_request(f"t{number}", dict.fromkeys(range(PARTITIONS), record))
            await client.call(request, PRODUCE_BY_NAME)


async def _segments(address: str) -> None:
    async with connect(address) as client:
        await create_topic(client, "t", internal_segment_bytes=SEGMENT_BYTES)
        await _produce(client, batch(b"x" * 50), SEGMENTS)


async def _gigabytes(address: str) -> None:
    async with connect(address) as client:
        await create_topic(client, "t")
        records = batch(*[os.urandom(10_000)] * (BATCH_BYTES // 10_000))
        await _produce(client, records, GIGABYTES * 10**9 // len(records))


async def _produce(client: Client, records: bytes, count: int) -> None:
    """Produce the same batch again and again to partition 0 of the topic t."""
    request = produce_request("t", records)
    for number in range(count + IN_FLIGHT):
        if number < count:
            await client.send(request, PRODUCE_BY_NAME)
        if number >= IN_FLIGHT:
            answer = await client.receive()
            [partition] = answer.responses[0].partition_responses
            if partition.error_code:
                raise RuntimeError(f"a produce failed: {partition}")
