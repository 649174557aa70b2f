"""aiokafka."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from bench.clients.task import MOST_AT_ONCE, WINDOW, Task, latencies, timed


def produce(task: Task) -> dict[str, float]:
    """`send()` in a loop, and every future awaited."""
    return asyncio.run(_produce(task))


async def _produce(task: Task) -> dict[str, float]:
    async with AIOKafkaProducer(
        bootstrap_servers=task.bootstrap,
        enable_idempotence=True,
        linger_ms=task.linger_ms,
        max_batch_size=task.batch_bytes,
        compression_type=None if task.compression == "none" else task.compression,
    ) as producer:
        topic, values = task.topic, task.values()
        newest = (await producer.send_and_wait(topic, values[0])).offset
        pending: deque[Any] = deque()
        send = producer.send
        with timed() as clock:
            for _ in task.rounds:
                for value in values:
                    pending.append(await send(topic, value))
                while len(pending) > WINDOW:
                    newest = _newer((await pending.popleft()).offset, newest)
            for future in pending:
                newest = _newer((await future).offset, newest)
    if newest != task.records:
        raise RuntimeError(f"the last record has offset {newest}")
    return clock.rates(task.records)


def _newer(offset: int, newest: int) -> int:
    if offset <= newest:
        raise RuntimeError(f"offset {offset} follows {newest}")
    return offset


def awaited(task: Task) -> dict[str, float]:
    """`send_and_wait()`, one record after the other."""
    return asyncio.run(_awaited(task))


async def _awaited(task: Task) -> dict[str, float]:
    async with AIOKafkaProducer(
        bootstrap_servers=task.bootstrap, enable_idempotence=True, linger_ms=0
    ) as producer:
        value = task.values()[0]
        samples: list[float] = []
        until = time.perf_counter() + task.seconds
        while time.perf_counter() < until or len(samples) < 10:
            began = time.perf_counter()
            await producer.send_and_wait(task.topic, value)
            samples.append(time.perf_counter() - began)
    return latencies(samples[5:])


@asynccontextmanager
async def _reading(task: Task) -> AsyncIterator[Any]:
    async with AIOKafkaConsumer(
        bootstrap_servers=task.bootstrap,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    ) as consumer:
        consumer.assign([TopicPartition(task.topic, 0)])
        yield consumer


def consume_each(task: Task) -> dict[str, float]:
    """`async for`."""
    return asyncio.run(_consume_each(task))


async def _consume_each(task: Task) -> dict[str, float]:
    async with _reading(task) as consumer:
        await consumer.getone()
        size, count, last = task.size, 1, task.records - 1
        with timed() as clock:
            async for record in consumer:
                if record.offset != count or len(record.value) != size:
                    raise RuntimeError(f"{record.offset} where {count} was expected")
                if count == last:
                    break
                count += 1
    return clock.rates(task.records)


def consume_batches(task: Task) -> dict[str, float]:
    """`getmany()` in a loop."""
    return asyncio.run(_consume_batches(task))


async def _consume_batches(task: Task) -> dict[str, float]:
    async with _reading(task) as consumer:
        await consumer.getone()
        size, count = task.size, 1
        with timed() as clock:
            while count < task.records:
                found = await consumer.getmany(timeout_ms=30_000, max_records=MOST_AT_ONCE)
                for records in found.values():
                    for record in records:
                        if record.offset != count or len(record.value) != size:
                            raise RuntimeError(f"{record.offset} where {count} was expected")
                        count += 1
    return clock.rates(task.records)


def join(task: Task) -> dict[str, float]:
    """From a new consumer to its first record, one group after the other."""
    return asyncio.run(_join(task))


async def _join(task: Task) -> dict[str, float]:
    samples: list[float] = []
    until = time.perf_counter() + task.seconds
    while time.perf_counter() < until or len(samples) < 3:
        began = time.perf_counter()
        async with AIOKafkaConsumer(
            task.topic,
            bootstrap_servers=task.bootstrap,
            group_id=f"{task.group}-{len(samples)}",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
        ) as consumer:
            await consumer.getone()
            samples.append(time.perf_counter() - began)
    return latencies(samples[1:])
