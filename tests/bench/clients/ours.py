"""trionet."""

from __future__ import annotations

import time
from collections import deque
from contextlib import AbstractAsyncContextManager

import trio

import trionet
from bench.clients.task import (
    MOST_AT_ONCE,
    RECORDS_PER_COMMIT,
    WINDOW,
    Task,
    commits,
    latencies,
    timed,
)

#: How many records one call of `send_batch` takes.
_BATCH = 100_000


def _writing(task: Task) -> AbstractAsyncContextManager[trionet.Producer]:
    return trionet.open_producer(
        task.bootstrap,
        {
            "batch.size": task.batch_bytes,
            "linger.ms": task.linger_ms,
            "compression.type": task.compression,
        },
    )


def produce(task: Task) -> dict[str, float]:
    """`send_nowait()` in a loop; every delivery is asked for its offset."""
    return trio.run(_produce, task)


async def _produce(task: Task) -> dict[str, float]:
    async with _writing(task) as producer:
        topic, values = task.topic, task.values()
        newest = (await producer.send(topic, values[0])).offset
        pending: deque[trionet.Delivery] = deque()
        send = producer.send_nowait
        with timed() as clock:
            for _ in task.rounds:
                for value in values:
                    try:
                        pending.append(send(topic, value))
                    except trio.WouldBlock:
                        pending.append(await producer.enqueue(topic, value))
                await trio.lowlevel.checkpoint()
                while pending and pending[0].is_done:
                    newest = _newer(pending.popleft().offset, newest)
                while len(pending) > WINDOW:
                    newest = _newer((await pending.popleft()).offset, newest)
            for delivery in pending:
                if not delivery.is_done:
                    await delivery
                newest = _newer(delivery.offset, newest)
    if newest != task.records:
        raise RuntimeError(f"the last record has offset {newest}")
    return clock.rates(task.records)


def produce_columns(task: Task) -> dict[str, float]:
    """`await send_batch()` of many values; the offset of every record is looked at.

    There is nothing else to look at: the call raises, unless all are written.
    """
    return trio.run(_produce_columns, task)


async def _produce_columns(task: Task) -> dict[str, float]:
    async with _writing(task) as producer:
        values = task.values()
        newest = (await producer.send(task.topic, values[0])).offset
        columns = values * (_BATCH // len(values))
        left = task.records
        with timed() as clock:
            while left:
                deliveries = await producer.send_batch(task.topic, columns[:left])
                for offset in deliveries.offsets():
                    if offset <= newest:
                        raise RuntimeError(f"offset {offset} follows {newest}")
                    newest = offset
                left -= len(deliveries)
    if newest != task.records:
        raise RuntimeError(f"the last record has offset {newest}")
    return clock.rates(task.records)


def _newer(offset: int, newest: int) -> int:
    if offset <= newest:
        raise RuntimeError(f"offset {offset} follows {newest}")
    return offset


def awaited(task: Task) -> dict[str, float]:
    """`await send()`, one record after the other."""
    return trio.run(_awaited, task)


async def _awaited(task: Task) -> dict[str, float]:
    async with trionet.open_producer(task.bootstrap, linger_ms=0) as producer:
        value = task.values()[0]
        samples: list[float] = []
        until = time.perf_counter() + task.seconds
        while time.perf_counter() < until or len(samples) < 10:
            began = time.perf_counter()
            await producer.send(task.topic, value)
            samples.append(time.perf_counter() - began)
    return latencies(samples[5:])


def transact(task: Task) -> dict[str, float]:
    """`async with producer.transaction()`, one after the other."""
    return trio.run(_transact, task)


async def _transact(task: Task) -> dict[str, float]:
    async with trionet.open_producer(
        task.bootstrap, transactional_id=task.topic, linger_ms=0
    ) as producer:
        values = task.values()[:RECORDS_PER_COMMIT]
        samples: list[float] = []
        until = time.perf_counter() + task.seconds
        while time.perf_counter() < until or len(samples) < 10:
            began = time.perf_counter()
            async with producer.transaction():
                for value in values:
                    _ = await producer.enqueue(task.topic, value)
            samples.append(time.perf_counter() - began)
    return commits(samples[5:])


def _reading(task: Task) -> AbstractAsyncContextManager[trionet.Consumer]:
    return trionet.open_consumer(
        task.bootstrap, auto_offset_reset="earliest", max_poll_records=MOST_AT_ONCE
    )


def consume_each(task: Task) -> dict[str, float]:
    """`async for`."""
    return trio.run(_consume_each, task)


async def _consume_each(task: Task) -> dict[str, float]:
    async with _reading(task) as consumer:
        consumer.assign([trionet.TopicPartition(task.topic, 0)])
        await anext(consumer)
        size, count, last = task.size, 1, task.records - 1
        with timed() as clock:
            async for record in consumer:
                if record.offset != count or len(record.value or b"") != size:
                    raise RuntimeError(f"{record.offset} where {count} was expected")
                if count == last:
                    break
                count += 1
    return clock.rates(task.records)


def consume_batches(task: Task) -> dict[str, float]:
    """`batches()`, whose columns are looked at."""
    return trio.run(_consume_batches, task)


async def _consume_batches(task: Task) -> dict[str, float]:
    async with _reading(task) as consumer:
        consumer.assign([trionet.TopicPartition(task.topic, 0)])
        await anext(consumer)
        consumer.seek(trionet.TopicPartition(task.topic, 0), 1)
        size, count = task.size, 1
        with timed() as clock:
            async for batch in consumer.batches():
                end = count + len(batch)
                if batch.offsets != range(count, end):
                    raise RuntimeError(f"{batch.offsets} where {count} was expected")
                for value in batch.values:
                    if value is None or len(value) != size:
                        raise RuntimeError(f"{value!r} after {count}")
                count = end
                if count == task.records:
                    break
    return clock.rates(task.records)


def join(task: Task) -> dict[str, float]:
    """From a new consumer to its first record, one group after the other."""
    return trio.run(_join, task)


async def _join(task: Task) -> dict[str, float]:
    samples: list[float] = []
    until = time.perf_counter() + task.seconds
    while time.perf_counter() < until or len(samples) < 3:
        group = f"{task.group}-{len(samples)}"
        began = time.perf_counter()
        async with trionet.open_consumer(
            task.bootstrap,
            topics=[task.topic],
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
        ) as consumer:
            await anext(consumer)
            samples.append(time.perf_counter() - began)
    return latencies(samples[1:])
