"""confluent-kafka."""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.clients.task import (
    MOST_AT_ONCE,
    RECORDS_PER_COMMIT,
    Task,
    commits,
    latencies,
    timed,
)

_QUIET = {"enable.metrics.push": False, "log_level": 3}
_PATIENCE_SECONDS = 30.0


def produce(task: Task) -> dict[str, float]:
    """`produce()` in a loop; deliveries are told to a callback, served each thousand records."""
    count, newest = 0, -1

    def delivered(error: Any, message: Any) -> None:
        nonlocal count, newest
        if error is not None:
            raise RuntimeError(str(error))
        offset = message.offset()
        if offset <= newest:
            raise RuntimeError(f"offset {offset} follows {newest}")
        newest = offset
        count += 1

    producer = Producer(
        _QUIET
        | {
            "bootstrap.servers": task.bootstrap,
            "enable.idempotence": True,
            "linger.ms": task.linger_ms,
            "batch.size": task.batch_bytes,
            "compression.type": task.compression,
            "on_delivery": delivered,
        }
    )
    topic, values = task.topic, task.values()
    producer.produce(topic, values[0])
    producer.flush(_PATIENCE_SECONDS)
    count, send, poll = 0, producer.produce, producer.poll
    with timed() as clock:
        for _ in task.rounds:
            for value in values:
                while True:
                    try:
                        send(topic, value)
                        break
                    except BufferError:
                        poll(0.01)
            poll(0)
        producer.flush(_PATIENCE_SECONDS)
    if count != task.records:
        raise RuntimeError(f"{count} of {task.records} records were acknowledged")
    return clock.rates(task.records)


def awaited(task: Task) -> dict[str, float]:
    """`produce()` and `flush()`, one record after the other."""
    failed: list[Any] = []

    def delivered(error: Any, _: Any) -> None:
        if error is not None:
            failed.append(error)

    producer = Producer(
        _QUIET
        | {
            "bootstrap.servers": task.bootstrap,
            "enable.idempotence": True,
            "linger.ms": 0,
            "on_delivery": delivered,
        }
    )
    value = task.values()[0]
    samples: list[float] = []
    until = time.perf_counter() + task.seconds
    while time.perf_counter() < until or len(samples) < 10:
        began = time.perf_counter()
        producer.produce(task.topic, value)
        if producer.flush(_PATIENCE_SECONDS) or failed:
            raise RuntimeError(f"a record was not acknowledged: {failed}")
        samples.append(time.perf_counter() - began)
    return latencies(samples[5:])


def transact(task: Task) -> dict[str, float]:
    """`begin_transaction()`, `produce()`, `commit_transaction()`, one after the other."""
    producer = Producer(
        _QUIET
        | {
            "bootstrap.servers": task.bootstrap,
            "transactional.id": task.topic,
            "linger.ms": 0,
        }
    )
    producer.init_transactions(_PATIENCE_SECONDS)
    values = task.values()[:RECORDS_PER_COMMIT]
    samples: list[float] = []
    until = time.perf_counter() + task.seconds
    while time.perf_counter() < until or len(samples) < 10:
        began = time.perf_counter()
        producer.begin_transaction()
        for value in values:
            producer.produce(task.topic, value)
        producer.commit_transaction(_PATIENCE_SECONDS)
        samples.append(time.perf_counter() - began)
    return commits(samples[5:])


def _reading(task: Task) -> Consumer:
    consumer = Consumer(
        _QUIET
        | {
            "bootstrap.servers": task.bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "earliest",
            "check.crcs": True,
            # By default it rests for a second whenever 100,000 records wait.
            "fetch.queue.backoff.ms": 10,
        }
    )
    consumer.assign([TopicPartition(task.topic, 0, 0)])
    return consumer


def consume_each(task: Task) -> dict[str, float]:
    """`poll()` in a loop."""
    consumer, size, count = _reading(task), task.size, 1
    _of(consumer.poll(_PATIENCE_SECONDS), 0, size)
    poll = consumer.poll
    with timed() as clock:
        while count < task.records:
            _of(poll(_PATIENCE_SECONDS), count, size)
            count += 1
    consumer.close()
    return clock.rates(task.records)


def _of(message: Any, expected: int, size: int) -> None:
    if message is None or message.error() is not None:
        raise RuntimeError(f"no record {expected}: {message and message.error()}")
    if message.offset() != expected or len(message.value()) != size:
        raise RuntimeError(f"{message.offset()} where {expected} was expected")


def consume_batches(task: Task) -> dict[str, float]:
    """`consume()` in a loop."""
    consumer, size, count = _reading(task), task.size, 1
    _of(consumer.poll(_PATIENCE_SECONDS), 0, size)
    with timed() as clock:
        while count < task.records:
            wanted = min(MOST_AT_ONCE, task.records - count)
            messages = consumer.consume(wanted, _PATIENCE_SECONDS)
            if not messages:
                raise RuntimeError(f"nothing follows {count - 1}")
            for message in messages:
                if (
                    message.error() is not None
                    or message.offset() != count
                    or len(message.value() or b"") != size
                ):
                    raise RuntimeError(f"{message.offset()} where {count} was expected")
                count += 1
    consumer.close()
    return clock.rates(task.records)


def join(task: Task) -> dict[str, float]:
    """From a new consumer to its first record, one group after the other."""
    samples: list[float] = []
    until = time.perf_counter() + task.seconds
    while time.perf_counter() < until or len(samples) < 3:
        began = time.perf_counter()
        consumer = Consumer(
            _QUIET
            | {
                "bootstrap.servers": task.bootstrap,
                "group.id": f"{task.group}-{len(samples)}",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
            }
        )
        consumer.subscribe([task.topic])
        _of(consumer.poll(_PATIENCE_SECONDS), 0, task.size)
        samples.append(time.perf_counter() - began)
        consumer.close()
    return latencies(samples[1:])
