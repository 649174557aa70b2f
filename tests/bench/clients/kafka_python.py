"""kafka-python."""

from __future__ import annotations

import time
from collections import deque
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from bench.clients.task import MOST_AT_ONCE, WINDOW, Task, latencies, timed

_PATIENCE_SECONDS = 30.0


def produce(task: Task) -> dict[str, float]:
    """`send()` in a loop, and every future asked for its result."""
    producer = KafkaProducer(
        bootstrap_servers=task.bootstrap,
        acks="all",
        enable_idempotence=True,
        linger_ms=task.linger_ms,
        batch_size=task.batch_bytes,
        compression_type=None if task.compression == "none" else task.compression,
    )
    topic, values = task.topic, task.values()
    newest = producer.send(topic, values[0]).get(_PATIENCE_SECONDS).offset
    pending: deque[Any] = deque()
    send = producer.send
    with timed() as clock:
        for _ in task.rounds:
            for value in values:
                pending.append(send(topic, value))
            while len(pending) > WINDOW:
                newest = _newer(pending.popleft(), newest)
        producer.flush(_PATIENCE_SECONDS)
        for future in pending:
            newest = _newer(future, newest)
    producer.close()
    if newest != task.records:
        raise RuntimeError(f"the last record has offset {newest}")
    return clock.rates(task.records)


def _newer(future: Any, newest: int) -> int:
    offset: int = future.get(_PATIENCE_SECONDS).offset
    if offset <= newest:
        raise RuntimeError(f"offset {offset} follows {newest}")
    return offset


def awaited(task: Task) -> dict[str, float]:
    """`send()` and its result, one record after the other."""
    producer = KafkaProducer(
        bootstrap_servers=task.bootstrap, acks="all", enable_idempotence=True, linger_ms=0
    )
    value = task.values()[0]
    samples: list[float] = []
    until = time.perf_counter() + task.seconds
    while time.perf_counter() < until or len(samples) < 10:
        began = time.perf_counter()
        producer.send(task.topic, value).get(_PATIENCE_SECONDS)
        samples.append(time.perf_counter() - began)
    producer.close()
    return latencies(samples[5:])


def _reading(task: Task) -> Any:
    consumer = KafkaConsumer(
        bootstrap_servers=task.bootstrap, enable_auto_commit=False, auto_offset_reset="earliest"
    )
    consumer.assign([TopicPartition(task.topic, 0)])
    return consumer


def consume_each(task: Task) -> dict[str, float]:
    """`for`."""
    consumer = _reading(task)
    next(consumer)
    size, count, last = task.size, 1, task.records - 1
    with timed() as clock:
        for record in consumer:
            if record.offset != count or len(record.value) != size:
                raise RuntimeError(f"{record.offset} where {count} was expected")
            if count == last:
                break
            count += 1
    consumer.close()
    return clock.rates(task.records)


def consume_batches(task: Task) -> dict[str, float]:
    """`poll()` in a loop."""
    consumer = _reading(task)
    next(consumer)
    size, count = task.size, 1
    with timed() as clock:
        while count < task.records:
            found = consumer.poll(timeout_ms=30_000, max_records=MOST_AT_ONCE)
            for records in found.values():
                for record in records:
                    if record.offset != count or len(record.value) != size:
                        raise RuntimeError(f"{record.offset} where {count} was expected")
                    count += 1
    consumer.close()
    return clock.rates(task.records)


def join(task: Task) -> dict[str, float]:
    """From a new consumer to its first record, one group after the other."""
    samples: list[float] = []
    until = time.perf_counter() + task.seconds
    while time.perf_counter() < until or len(samples) < 3:
        began = time.perf_counter()
        consumer = KafkaConsumer(
            task.topic,
            bootstrap_servers=task.bootstrap,
            group_id=f"{task.group}-{len(samples)}",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
        )
        next(consumer)
        samples.append(time.perf_counter() - began)
        consumer.close()
    return latencies(samples[1:])
