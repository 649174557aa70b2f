"""Compaction: our cleaner and Kafka's on the same log, and producing while ours works.

A gigabyte (`--seconds` scales it) of records of which a tenth of the keys are different, in batches
of 16 KB in segments of 128 MB, is cleaned as a whole: by Kafka's Cleaner, whose JVM has cleaned
such a log before, and by `broker.compact()`. The time contains all that a cleaning does, also what
it flushes, but not opening the log. Everything is in memory: no disk is compared.

Then records are produced at a steady rate to another topic, without a cleaning and beside one.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import trio

from bench.frames import produce
from bench.load import load_command, processor_seconds
from bench.measured import OURS, Figure, Measured
from bench.options import Options
from bench.topics import topic
from support.cache import Unavailable
from support.calls import PRODUCE_BY_NAME, create_topic, produce_request
from support.client import Client, connect
from support.compaction_model import Round
from support.kafka_cleaner import KafkaCleaner, kafka_cleaner
from support.kafka_node import memory_folder
from support.processes import SAME_TRIONET, first_line, running
from trionet.protocol.records._records import encode_columns

RUNS = 3
SECONDS = 1.0
GIGABYTE = 10**9
TOPIC = "table"
SEGMENT_BYTES = 128 << 20
BATCH_BYTES = 16_384
IN_FLIGHT = 16
#: What a record takes beside its value: the key, lengths, and the deltas.
OVERHEAD_BYTES = 22
CASES = {"1-KB records": (1024, 0), "100-byte records": (100, 0), "100-byte records, lz4": (100, 3)}
KAFKA = "Apache Kafka"
#: As a broker has it: bin/kafka-server-start.sh, and log.cleaner.dedupe.buffer.size.
JVM_OPTIONS = ("-Xmx1g", "-Xms1g", "-XX:+UseG1GC")
KAFKA_KEYS_MAX = 134_217_728 // 24
PRODUCE = "produce"
CONNECTIONS, RATE = 8, 2000
LOAD_SECONDS = 3.0
_NOTHING = dict.fromkeys(
    ("megabytes", "cpu_s", "left", "p99_us", "lag_p99_us", "probe_p99_us"), 0.0
)


def measure(options: Options) -> Measured:
    """Run the benchmark; `--seconds` is the size of the log in GB."""
    measured = Measured(
        "cleaning a log in which a tenth of the keys are different",
        (
            Figure("megabytes", "MB/s", _shown),
            Figure("cpu_s", "CPU s", lambda value: f"{value:.1f}" if value else ""),
            Figure("left", "MB left", _shown),
            Figure("p99_us", "produce p99 µs", _shown),
            Figure("lag_p99_us", "loop pass p99 µs", _shown),
            Figure("probe_p99_us", "1-ms probe late by, p99 µs", _shown),
        ),
    )
    size = int(GIGABYTE * options.seconds)
    for case, (record_bytes, codec) in CASES.items():
        if not options.wants_case(case):
            continue
        with tempfile.TemporaryDirectory(prefix="bench-", dir=memory_folder()) as name:
            data = Path(name) / "written"
            count = size // record_bytes
            with _broker(data) as (address, _):
                trio.run(_write, address, count, record_bytes - OVERHEAD_BYTES, codec)
            _compare(measured, case, data, Path(name), options)
            for _ in range(options.runs):
                if options.wants(OURS):
                    _produce_beside(measured, case, data, Path(name) / "copy")
    return measured


def _shown(value: float) -> str:
    """A figure, which not every case has."""
    return f"{value:,.0f}" if value else ""


async def _write(address: str, count: int, value_bytes: int, codec: int) -> None:
    """Produce records with random keys to a compacted topic."""
    rng = random.Random(1)
    keys = [b"key-%08d" % number for number in range(max(1, count // 10))]
    # Half of each value is the same in all: codecs have something to find.
    text = bytes(value_bytes // 2)
    values = [rng.randbytes(value_bytes - len(text)) + text for _ in range(1000)]
    a_batch = max(1, BATCH_BYTES // (value_bytes + OVERHEAD_BYTES))
    async with connect(address) as client:
        await create_topic(client, TOPIC, cleanup_policy="compact", segment_bytes=SEGMENT_BYTES)
        sent = 0
        for start in range(0, count, a_batch):
            some = min(a_batch, count - start)
            data = encode_columns(
                time.time_ns() // 1_000_000,
                rng.choices(values, k=some),
                rng.choices(keys, k=some),
                codec=codec,
            )
            await client.send(produce_request(TOPIC, data), PRODUCE_BY_NAME)
            sent += 1
            if sent >= IN_FLIGHT:
                await _acknowledged(client)
        for _ in range(min(sent, IN_FLIGHT - 1)):
            await _acknowledged(client)


async def _acknowledged(client: Client) -> None:
    response = await client.receive()
    [partition] = response.responses[0].partition_responses
    if partition.error_code:
        raise RuntimeError(f"a produce failed: {partition}")


def _compare(measured: Measured, case: str, data: Path, folder: Path, options: Options) -> None:
    """Clean copies of a log in turns."""
    log = data / f"{TOPIC}-0"
    size = _size(log)
    with contextlib.ExitStack() as stack:
        cleaner = None
        if options.wants(KAFKA):
            try:
                cleaner = stack.enter_context(kafka_cleaner(JVM_OPTIONS))
            except Unavailable as reason:
                measured.skipped[KAFKA] = str(reason)
        if cleaner is not None:
            _clean_by_kafka(cleaner, log, folder / "warm")
        for _ in range(options.runs):
            if cleaner is not None:
                measured.add(case, KAFKA, _rate(size, _clean_by_kafka(cleaner, log, folder / "k")))
            if options.wants(OURS):
                measured.add(case, OURS, _rate(size, _clean_by_broker(data, folder / "copy")))


def _rate(size: int, figures: dict[str, float]) -> dict[str, float]:
    return _NOTHING | figures | {"megabytes": size / 1e6 / figures["seconds"]}


def _clean_by_kafka(cleaner: KafkaCleaner, log: Path, copy: Path) -> dict[str, float]:
    shutil.copytree(log, copy / log.name)
    try:
        end_offset = max(int(path.stem) for path in log.glob("*.snapshot"))
        # An active segment: ours rolls the log, so that all of it is cleaned.
        (copy / log.name / f"{end_offset:020d}.log").touch()
        told = Round(0, end_offset, KAFKA_KEYS_MAX, 86_400_000, time.time_ns() // 1_000_000, {})
        before = processor_seconds(cleaner.pid)
        done = cleaner.clean(copy / log.name, end_offset, told, {"segment.bytes": SEGMENT_BYTES})
        return {
            "seconds": done.nanoseconds / 1e9,
            "cpu_s": processor_seconds(cleaner.pid) - before,
            "left": _size(copy / log.name) / 1e6,
        }
    finally:
        shutil.rmtree(copy, ignore_errors=True)


def _clean_by_broker(data: Path, copy: Path) -> dict[str, float]:
    shutil.copytree(data, copy)
    try:
        with _broker(copy) as (_, process):
            before = _seconds_with_children(process.pid)
            _ask(process, f"compact {TOPIC}")
            figures = _ask(process, "wait")
            figures["cpu_s"] = _seconds_with_children(process.pid) - before
            figures["left"] = _size(copy / f"{TOPIC}-0") / 1e6
        return figures
    finally:
        shutil.rmtree(copy, ignore_errors=True)


def _seconds_with_children(pid: int) -> float:
    """User and system time of a process and of its children that have ended (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _size(log: Path) -> int:
    return sum(path.stat().st_size for path in log.glob("*.log"))


def _produce_beside(measured: Measured, case: str, data: Path, copy: Path) -> None:
    """Produce at a steady rate, without a cleaning and beside one."""
    frame = produce("bench", bytes(1000))
    shutil.copytree(data, copy)
    try:
        with _broker(copy) as (address, process), topic(address, "bench"):
            port = int(address.rpartition(":")[2])
            for beside in (False, True):
                _ask(process, "clear")
                with load_command(port, CONNECTIONS, LOAD_SECONDS, frame, RATE) as command:
                    if beside:
                        _ask(process, f"compact {TOPIC}")
                    done = subprocess.run(command, check=True, capture_output=True)
                figures = _NOTHING | json.loads(done.stdout) | _ask(process, "lag")
                name = f"{PRODUCE}, {'cleaning' if beside else 'not cleaning'} {case}"
                if beside:
                    seconds = _ask(process, "wait")["seconds"]
                    if seconds < LOAD_SECONDS:
                        measured.skipped[name] = (
                            f"the cleaning took {seconds:.1f} s of {LOAD_SECONDS:.0f}"
                        )
                measured.add(name, OURS, figures)
    finally:
        shutil.rmtree(copy, ignore_errors=True)


@contextlib.contextmanager
def _broker(data: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    program = Path(__file__).parent / "servers" / "compacting_broker.py"
    with running([sys.executable, program, data], env=SAME_TRIONET, stop_seconds=60) as process:
        yield first_line(process), process
        assert process.stdin is not None
        process.stdin.close()  # which ends it as it should end
        process.wait()


def _ask(process: subprocess.Popen[bytes], command: str) -> dict[str, float]:
    assert process.stdin is not None
    process.stdin.write(command.encode() + b"\n")
    process.stdin.flush()
    figures: dict[str, float] = json.loads(first_line(process))
    return figures
