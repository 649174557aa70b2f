"""Topics with transactions, which Apache Kafka has, read with either level of isolation."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest
import trio

import trionet
from spark.brokers import numbers
from support.cache import Unavailable
from support.eventually import eventually
from support.kafka_node import kafka_node
from trionet import TopicPartition
from trionet.client.admin import NewTopic, OffsetSpec
from trionet.spark._loop_host import host

pytest.importorskip("pyspark", reason="PySpark cannot be imported: pip install 'trionet[spark]'")
pytest.importorskip("confluent_kafka", reason="confluent-kafka cannot be imported")

from confluent_kafka import Producer

from spark.reading import Query, opened, table

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(300)]

COMMITTED = {"kafka_isolation_level": "read_committed"}
UNCOMMITTED = {"kafka_isolation_level": "read_uncommitted"}


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    try:
        with kafka_node() as (bootstrap_servers, _):
            yield bootstrap_servers
            host().close()
    except Unavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture
def topic(servers: str, request: pytest.FixtureRequest) -> str:
    name = f"x{abs(hash(request.node.nodeid)):x}"

    async def create() -> None:
        async with trionet.open_admin(servers) as admin:
            (await admin.create_topics([NewTopic(name, 1)])).checked()

    trio.run(create)
    return name


class Writer:
    """Writes numbers in transactions."""

    def __init__(self, servers: str, topic: str) -> None:
        self._servers = servers
        self._topic = topic
        self._end = 0
        self._producer = Producer({"bootstrap.servers": servers, "transactional.id": topic})
        self._producer.init_transactions(60)

    def begin(self, first: int, last: int) -> None:
        self._producer.begin_transaction()
        for number in range(first, last + 1):
            self._producer.produce(self._topic, str(number), partition=0)
        assert 0 == self._producer.flush(60)
        self._end = last + 1

    def commit(self) -> None:
        self._producer.commit_transaction(60)
        self._until_marked()

    def abort(self) -> None:
        self._producer.abort_transaction(60)
        self._until_marked()

    def _until_marked(self) -> None:
        """The coordinator responds before its marker is in the log."""
        self._end += 1

        async def wait() -> None:
            async with trionet.open_admin(self._servers) as admin:
                place = TopicPartition(self._topic, 0)
                await eventually(
                    partial(admin.list_offsets, {place: OffsetSpec.LATEST}, read_committed=True),
                    lambda found: found.checked()[place].offset == self._end,
                )

        trio.run(wait)


def test_a_stream_reads_what_is_committed(servers: str, topic: str) -> None:
    """MB20: read_committed: each micro-batch, also without any record."""
    options = {"subscribe": topic, "startingOffsets": "earliest", **COMMITTED}
    query = Query(opened(servers, **options, maxOffsetsPerTrigger=3))
    writer = Writer(servers, topic)
    assert [] == query.next()

    writer.begin(0, 4)
    open_ones = query.next()
    writer.commit()
    # The marker of the commit takes the place of offset 5.
    committed = [query.next(), query.next(), query.next()]

    assert [] == open_ones
    assert [numbers(0, 2), numbers(3, 4), []] == committed

    writer.begin(6, 9)
    writer.abort()
    # Offsets 6 to 10: micro-batches that have offsets, and no record.
    aborted = [query.next(), query.next()]
    assert {topic: {"0": 11}} == query.start
    writer.begin(11, 12)
    writer.commit()

    assert [[], []] == aborted
    assert numbers(11, 12) == query.next()


def test_a_stream_reads_what_is_not_committed_yet(servers: str, topic: str) -> None:
    """MB21: read_uncommitted: each micro-batch."""
    options = {"subscribe": topic, "startingOffsets": "earliest", **UNCOMMITTED}
    query = Query(opened(servers, **options, maxOffsetsPerTrigger=3))
    writer = Writer(servers, topic)

    writer.begin(0, 4)
    while_it_is_open = [query.next(), query.next()]
    writer.commit()
    writer.begin(6, 8)
    writer.abort()

    assert [numbers(0, 2), numbers(3, 4)] == while_it_is_open
    # From 5 on: a marker, three that were taken back, and another marker.
    assert [numbers(6, 7), ["8"], []] == [query.next() for _ in range(3)]


def test_what_was_fetched_beyond_a_micro_batch_is_not_read_twice(servers: str, topic: str) -> None:
    """MB22: what was fetched ahead is not read twice (SPARK-25495)."""
    writer = Writer(servers, topic)
    writer.begin(0, 4)
    writer.commit()
    writer.begin(6, 9)
    writer.abort()
    writer.begin(11, 14)
    writer.commit()
    options = {"subscribe": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": 1}
    query = Query(opened(servers, **options, **COMMITTED))

    found = [query.next() for _ in range(16)]

    assert [*map(str, [*range(5), *range(11, 15)])] == [each for batch in found for each in batch]
    assert {topic: {"0": 16}} == query.start


def test_a_table_has_what_is_committed(servers: str, topic: str) -> None:
    """RE16: read_committed."""
    writer = Writer(servers, topic)
    assert [] == table(servers, subscribe=topic, **COMMITTED)
    writer.begin(0, 4)
    assert [] == table(servers, subscribe=topic, **COMMITTED)
    writer.commit()
    writer.begin(6, 8)
    writer.abort()
    writer.begin(10, 12)

    found = table(servers, subscribe=topic, **COMMITTED)

    writer.commit()
    assert numbers(0, 4) == found
    assert [*numbers(0, 4), *numbers(10, 12)] == table(servers, subscribe=topic, **COMMITTED)


def test_a_table_has_what_is_not_committed_yet(servers: str, topic: str) -> None:
    """RE17: read_uncommitted."""
    writer = Writer(servers, topic)
    writer.begin(0, 4)
    found = table(servers, subscribe=topic, **UNCOMMITTED)
    writer.abort()

    assert numbers(0, 4) == found
    assert numbers(0, 4) == table(servers, subscribe=topic, **UNCOMMITTED)
    assert [] == table(servers, subscribe=topic, **COMMITTED)
