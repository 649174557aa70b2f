"""What a client is to do, and what came of it."""

from __future__ import annotations

import json
import random
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs

#: Values differ as real ones do; more of them would measure the processor's caches.
VALUES = 1000
#: How many records a client that waits for them one by one leaves without a response meanwhile.
WINDOW = 20_000
#: How many records are asked for together; confluent-kafka's fastest.
MOST_AT_ONCE = 1000


@attrs.frozen
class Task:
    """One run of one client.

    Attributes:
        bootstrap: the broker.
        topic: an existing one with a single partition; it holds what a consumer is to read.
        group: that a consumer joins; empty for none.
        records: how many to produce or to consume.
        seconds: how long to go on, where that counts instead.
        size: bytes of a value.
        batch_bytes: ``batch.size``.
        linger_ms: ``linger.ms``.
        compression: ``compression.type``.
    """

    bootstrap: str
    topic: str
    group: str = ""
    records: int = 0
    seconds: float = 0.0
    size: int = 100
    batch_bytes: int = 16_384
    linger_ms: int = 5
    compression: str = "none"

    @classmethod
    def of(cls, text: str) -> Task:
        return cls(**json.loads(text))

    def as_text(self) -> str:
        return json.dumps(attrs.asdict(self))

    def values(self) -> list[bytes]:
        """What is produced, over and over again."""
        rng = random.Random(self.size)
        return [rng.randbytes(self.size) for _ in range(VALUES)]

    @property
    def rounds(self) -> range:
        """How often that is done."""
        return range(self.records // VALUES)


@attrs.define
class Clock:
    """The time that work took, and the processor's."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0

    def rates(self, records: int) -> dict[str, float]:
        return {
            "records": records / self.seconds,
            "cpu_us": self.cpu_seconds / records * 1e6,
            "memory": peak_memory_bytes(),
        }


@contextmanager
def timed() -> Iterator[Clock]:
    """Measure the block; all threads' time counts, as the user has paid for them."""
    clock = Clock()
    cpu = _cpu_seconds()
    began = time.perf_counter()
    yield clock
    clock.seconds = time.perf_counter() - began
    clock.cpu_seconds = _cpu_seconds() - cpu


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def peak_memory_bytes() -> float:
    """The most that this process had in memory; ``ru_maxrss`` would remember who started it."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return float(line.split()[1]) * 1024
    raise RuntimeError("the system does not tell the peak of a process")


RECORDS_PER_COMMIT = 10
"""The size of a transaction."""


def commits(samples: list[float]) -> dict[str, float]:
    """The figures of transactions that were committed one after the other, from seconds."""
    return {"commits": len(samples) / sum(samples), **latencies(samples)}


def latencies(samples: list[float]) -> dict[str, float]:
    """The figures of what was done one after the other, from seconds."""
    ordered = sorted(samples)
    return {
        "p50_us": ordered[len(ordered) // 2] * 1e6,
        "p99_us": ordered[int(len(ordered) * 0.99)] * 1e6,
        "times": len(ordered),
    }
