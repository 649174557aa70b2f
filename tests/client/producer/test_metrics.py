"""What a producer reports of itself, by Kafka's names (2.5)."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

import trionet
from trionet import TopicPartition
from trionet.client.consumer import GroupMetadata
from trionet.errors import BufferExhaustedError
from trionet.testing import MemoryNetwork

RECORDS = 100
VALUE = bytes(100)


async def test_records_and_batches_are_reported_of_the_producer_and_of_each_topic() -> None:
    async with (
        trionet.open_broker() as broker,
        trionet.open_producer(broker.bootstrap_servers, compression_type="gzip") as producer,
    ):
        deliveries = [
            await producer.enqueue(topic, VALUE)
            for topic in ("orders", "returns")
            for _ in range(RECORDS)
        ]
        await producer.flush()

        actual = producer.statistics()

    assert all(each.is_done for each in deliveries)
    assert 2 * RECORDS == actual["record-send-total"]
    assert {"orders", "returns"} == actual.topics.keys()
    assert all(each["record-send-total"] == RECORDS for each in actual.topics.values())
    assert all(each["byte-total"] > 0 for each in actual.topics.values())
    assert 0 == actual["record-error-total"] == actual["record-retry-total"]
    assert 0 < actual["compression-rate-avg"] < 1  # gzip makes little of zeros
    assert len(VALUE) < actual["record-size-avg"] < 2 * len(VALUE)
    assert 0 < actual["batch-size-avg"] <= actual["batch-size-max"] < RECORDS * len(VALUE)
    assert 0 <= actual["record-queue-time-avg"] <= actual["record-queue-time-max"]
    assert 0 < actual["request-latency-avg"] <= actual["request-latency-max"]
    assert 1 <= actual["records-per-request-avg"] <= 2 * RECORDS
    assert 0 == actual["requests-in-flight"] == actual["batch-split-total"]
    assert actual["buffer-total-bytes"] == actual["buffer-available-bytes"] == 33_554_432
    assert actual["request-total"] == actual["response-total"] > 2
    assert actual["metadata-age"] >= 0


async def test_what_failed_and_was_sent_again_is_counted(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    async with (
        trionet.open_broker(network=network) as broker,
        trionet.open_producer(broker.bootstrap_servers, network=network, linger_ms=0) as producer,
    ):
        await producer.send("orders", VALUE, timestamp=0)
        faults = trionet.testing.control(broker).faults
        with faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", times=2):
            await producer.send("orders", VALUE, timestamp=0)

        actual = producer.statistics()

    assert 4 == actual["record-send-total"] == actual.topics["orders"]["record-send-total"]
    assert 2 == actual["record-retry-total"] == actual.topics["orders"]["record-retry-total"]
    assert 0 == actual["record-error-total"]


async def test_who_waits_for_memory_is_counted(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    """2.5: waiting-threads, bufferpool-wait-time-ns-total, buffer-exhausted-total."""
    async with (
        trionet.open_broker(network=network) as broker,
        trionet.open_producer(
            broker.bootstrap_servers,
            network=network,
            batch_size=0,
            buffer_memory=1000,
            max_block_ms=10_000,
            linger_ms=0,
        ) as producer,
    ):
        # The first record keeps its memory, since no broker responds.
        with trionet.testing.control(broker).faults.hold("Produce"):
            sent = await producer.enqueue("orders", bytes(500), timestamp=0)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_exhaust, producer)
                await trio.sleep(5)
                waiting = producer.statistics()
            after = producer.statistics()
        await sent

    assert 1 == waiting["waiting-threads"]
    assert 1000 > waiting["buffer-available-bytes"]
    assert pytest.approx(5e9) == waiting["bufferpool-wait-time-ns-total"]
    assert 0 == after["waiting-threads"]
    assert pytest.approx(10e9) == after["bufferpool-wait-time-ns-total"]
    assert (0, 1) == (waiting["buffer-exhausted-total"], after["buffer-exhausted-total"])


async def _exhaust(producer: trionet.Producer) -> None:
    with pytest.raises(BufferExhaustedError):
        (await producer.enqueue("orders", bytes(600))).result()


TIMES = ("txn-init", "txn-begin", "txn-send-offsets", "txn-commit", "txn-abort", "flush")


def seconds_of_calls(producer: trionet.Producer) -> dict[str, float]:
    found = producer.statistics()
    times = {each: found[f"{each}-time-ns-total"] / 1e9 for each in TIMES}
    return {each: round(seconds, 3) for each, seconds in times.items() if seconds}


async def test_time_of_calls_for_transactions_is_reported(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    """KIP-761: each call counts what it waits for, and a begin not what it initializes."""
    async with (
        trionet.open_broker(network=network) as broker,
        trionet.open_producer(
            broker.bootstrap_servers, network=network, transactional_id="x"
        ) as producer,
    ):
        kit = trionet.testing.control(broker)
        await kit.create_topic("orders")
        group = GroupMetadata("g", -1, "", None)
        assert {} == seconds_of_calls(producer)
        kit.faults.delay("InitProducerId", 1)
        kit.faults.delay("Produce", 2)
        kit.faults.delay("TxnOffsetCommit", 4)
        kit.faults.delay("EndTxn", 8, times=None)

        await producer.begin_transaction()
        assert {"txn-init": 1} == seconds_of_calls(producer)
        _ = await producer.enqueue("orders", VALUE, timestamp=0)
        await producer.flush()
        await producer.send_offsets_to_transaction({TopicPartition("orders", 0): 1}, group)
        await producer.commit_transaction()
        committed = {"txn-init": 1, "flush": 2, "txn-send-offsets": 4, "txn-commit": 8}
        assert committed == seconds_of_calls(producer)
        await producer.begin_transaction()
        await producer.send("orders", VALUE, timestamp=0)
        await producer.abort_transaction()
        assert {**committed, "txn-abort": 8} == seconds_of_calls(producer)

        await producer.begin_transaction()
        await producer.send("orders", VALUE, timestamp=0)
        with trio.move_on_after(1):
            await producer.commit_transaction()  # which waits for another 5 s
        await producer.begin_transaction()
        assert {**committed, "txn-abort": 8, "txn-begin": 2} == seconds_of_calls(producer)
