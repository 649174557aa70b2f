"""Joining a group: from the start of an aiokafka consumer to its first record.

"one member" joins a group that nobody has been in; of "five members" who join at once, the time is
that of the last one to have read. Every member has a partition with a record in it.
"""

from __future__ import annotations

import asyncio
import importlib
import statistics
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.brokers import running_brokers
from bench.measured import Figure, Measured
from bench.options import Options

RUNS = 7
SECONDS = 2.0
CASES = {"one member": 1, "five members": 5}
_HEARTBEAT_MS = 100  # by which members are told that others have come
_PATIENCE_SECONDS = 30.0


def measure(options: Options) -> Measured:
    """Run the benchmark."""
    measured = Measured(
        "from the start of an aiokafka consumer to its first record",
        (
            Figure("ms", "p50 ms", "{:,.2f}".format),
            Figure("p90_ms", "p90 ms", "{:,.2f}".format),
            Figure("joins", "times"),
        ),
    )
    try:
        importlib.import_module("aiokafka")
    except ImportError as error:
        measured.skipped["all"] = str(error)
        return measured
    with running_brokers(options, measured) as brokers:
        for case, members in CASES.items():
            if not options.wants_case(case):
                continue
            for run in range(options.runs):
                for broker in brokers:
                    with _records(broker.bootstrap, f"join-{members}-{run}", members) as topic:
                        times = asyncio.run(
                            _joins(broker.bootstrap, topic, members, options.seconds)
                        )
                    measured.add(case, broker.side, _figures(times))
    return measured


def _figures(times: list[float]) -> dict[str, float]:
    return {
        "ms": statistics.median(times) * 1000,
        "p90_ms": sorted(times)[int(0.9 * (len(times) - 1))] * 1000,
        "joins": len(times),
    }


@contextmanager
def _records(bootstrap: str, name: str, partitions: int) -> Iterator[str]:
    """A topic with a record in each partition."""
    quiet: dict[str, str | int | float | bool] = {
        "bootstrap.servers": bootstrap,
        "enable.metrics.push": False,
        "log_level": 0,
    }
    admin = AdminClient(quiet)
    for future in admin.create_topics([NewTopic(name, partitions, 1)]).values():
        future.result(_PATIENCE_SECONDS)
    producer = Producer(quiet)
    for partition in range(partitions):
        producer.produce(name, b"first", partition=partition)
    if producer.flush(_PATIENCE_SECONDS):
        raise RuntimeError("the records were not written")
    try:
        yield name
    finally:
        for future in admin.delete_topics([name]).values():
            future.result(_PATIENCE_SECONDS)


async def _joins(bootstrap: str, topic: str, members: int, seconds: float) -> list[float]:
    """The times of one group after another; the first is to warm up, and does not count."""
    times: list[float] = []
    until = time.perf_counter() + seconds
    while len(times) < 2 or time.perf_counter() < until:
        group = f"{topic}-{len(times)}"
        async with AsyncExitStack() as stack:
            begin = time.perf_counter()
            await asyncio.gather(
                *(_first_record(stack, bootstrap, topic, group) for _ in range(members))
            )
            times.append(time.perf_counter() - begin)
    return times[1:]


async def _first_record(stack: AsyncExitStack, bootstrap: str, topic: str, group: str) -> None:
    consumer = await stack.enter_async_context(_consumer(bootstrap, topic, group))
    await asyncio.wait_for(consumer.getone(), _PATIENCE_SECONDS)


@asynccontextmanager
async def _consumer(bootstrap: str, topic: str, group: str) -> AsyncIterator[Any]:
    aiokafka = importlib.import_module("aiokafka")
    async with aiokafka.AIOKafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        heartbeat_interval_ms=_HEARTBEAT_MS,
    ) as consumer:
        yield consumer
