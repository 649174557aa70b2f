"""Loop lag: how long trionet's loop is held while it writes at full rate and reads cold segments.

1-KB records to a folder on this machine's disk (not tmpfs); the pages of the old segments are
dropped from the page cache before they are read back.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.librdkafka import librdkafka
from bench.measured import Figure, Measured
from bench.options import Options
from bench.topics import topic
from support.cache import Unavailable, cache_folder
from support.processes import SAME_TRIONET, first_line, running

RUNS = 3
SECONDS = 2.0
PAYLOAD_BYTES = 1024
RECORDS_A_SECOND = 150_000
SEGMENT_BYTES = 16 << 20
SIDE = "trionet disk"


def measure(options: Options) -> Measured:
    """Run the benchmark."""
    measured = Measured(
        "how long the broker's loop was held",
        (
            Figure("p99_us", "pass p99 µs"),
            Figure("max_us", "pass max µs"),
            Figure("probe_p99_us", "1-ms probe late by, p99 µs"),
            Figure("probe_max_us", "max µs"),
            Figure("megabytes", "MB/s"),
        ),
    )
    for side in ("Apache Kafka", "kfake"):
        measured.skipped[side] = "has no loop to measure"
    cache_folder().mkdir(parents=True, exist_ok=True)
    for _ in range(options.runs):
        with tempfile.TemporaryDirectory(prefix="lag-", dir=cache_folder()) as folder:
            _one(measured, Path(folder) / "data", int(RECORDS_A_SECOND * options.seconds))
    return measured


def _one(measured: Measured, data: Path, records: int) -> None:
    program = Path(__file__).parent / "servers" / "broker_with_lag.py"
    command = [sys.executable, str(program), str(data), str(SEGMENT_BYTES)]
    with running(command, env=SAME_TRIONET) as broker:
        bootstrap = first_line(broker)
        with topic(bootstrap, "lag") as name:
            _asked(broker)  # forget what starting took
            for case, mode in (("produce", "produce"), ("consume cold segments", "consume")):
                if mode == "consume":
                    try:
                        drop_pages(data)
                    except Unavailable as reason:
                        measured.skipped[case] = str(reason)
                        return
                    _asked(broker)
                settings = {"acks": "1", "linger_ms": "5"} if mode == "produce" else {}
                figures = librdkafka(mode, bootstrap, name, PAYLOAD_BYTES, records, **settings)
                measured.add(case, SIDE, _asked(broker) | {"megabytes": figures["megabytes"]})


def _asked(broker: subprocess.Popen[bytes]) -> dict[str, float]:
    assert broker.stdin is not None
    broker.stdin.write(b"\n")
    broker.stdin.flush()
    figures: dict[str, float] = json.loads(first_line(broker))
    return figures


def drop_pages(folder: Path) -> None:
    """Write a folder's logs to the disk and drop them from the page cache (Linux).

    Raises:
        Unavailable: they are still there, as on a file system that lives in memory.
    """
    for path in folder.rglob("*.log"):
        if not path.stat().st_size:
            continue
        descriptor = os.open(path, os.O_RDWR)
        try:
            os.fsync(descriptor)  # only clean pages can be dropped
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            try:
                os.preadv(descriptor, [bytearray(1)], 0, os.RWF_NOWAIT)
            except BlockingIOError:
                continue
            raise Unavailable(f"the system keeps {path} in its page cache")
        finally:
            os.close(descriptor)
