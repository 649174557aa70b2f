"""The metrics of the log cleaner, by Kafka's names."""

from __future__ import annotations

import trio
from trio.testing import MockClock

from support.calls import TIMESTAMP, batch, create_topic, produce
from support.client import Client, connect
from trionet import Broker, open_broker
from trionet.broker.telemetry._broker_metrics import RECORDS_WITHOUT_KEY
from trionet.broker.telemetry._cleaner_metrics import CLEANER_METRICS, OF_CLEANER, OF_DIRECTORY
from trionet.metrics._registry import Snapshot
from trionet.testing import MemoryNetwork


def snapshot(broker: Broker) -> Snapshot:
    with broker.watch() as metrics:
        return metrics.snapshot()


def test_names_are_those_of_the_jmx_exporter() -> None:
    """Kafka: LogCleaner and LogCleanerManager, in lower case with underscores."""
    names = {metric.kafka: metric.name for metric in CLEANER_METRICS}

    assert 9 == len(names)
    assert (
        "kafka_log_logcleanermanager_uncleanable_partitions_count"
        == (names["kafka.log:type=LogCleanerManager,name=uncleanable-partitions-count"])
    )
    assert (
        "kafka_log_logcleaner_deadthreadcount"
        == (names["kafka.log:type=LogCleaner,name=DeadThreadCount"])
    )


async def test_cleaner_without_work_reports_zeros_for_its_directory() -> None:
    async with open_broker() as broker:
        found = snapshot(broker)

    without_run = OF_CLEANER.keys() - {"time_since_last_run_ms"}
    assert {0} == {found[OF_CLEANER[field].name].of() for field in without_run}
    assert {0} == {found[metric.name].of("memory") for metric in OF_DIRECTORY.values()}


async def test_records_without_a_key_are_counted() -> None:
    async with open_broker() as broker, connect(broker.bootstrap_servers) as client:
        await create_topic(client, "t", cleanup_policy="compact")
        await produce(client, "t", batch(b"a", b"b"))
        await produce(client, "t", batch(b"a", b"b", key=b"k"))

        assert 2 == snapshot(broker)[RECORDS_WITHOUT_KEY[0].name].of()


async def test_cleaning_is_reported(autojump_clock: MockClock) -> None:
    network = MemoryNetwork()
    async with (
        open_broker(log_cleaner_backoff_ms=1000, network=network) as broker,
        await network.open_stream(broker.bootstrap_servers) as stream,
    ):
        client = Client(stream)
        await create_topic(client, "t", cleanup_policy="compact", segment_ms=1000)
        for _ in range(10):
            await produce(client, "t", batch(b"v" * 100, key=b"k"))
        rolling = batch(b"v", key=b"k", timestamp=TIMESTAMP + 2000)
        await produce(client, "t", rolling)
        await trio.sleep(5)
        found = snapshot(broker)

    assert 5 < found[OF_CLEANER["recopy_percent"].name].of() < 50
    assert found[OF_CLEANER["time_since_last_run_ms"].name].of() <= 2000
