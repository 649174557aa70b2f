"""What the driver makes of the messages of tasks; without Spark, against our broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StringType, StructField, StructType

from spark.sink.micro_batches import Query, rows
from trionet.errors import TrionetError
from trionet.spark._loop_host import host
from trionet.spark.sink._exactly_once import ExactlyOnceWriter
from trionet.testing import broker

SCHEMA = StructType([StructField("value", StringType())])


@pytest.fixture
def query() -> Iterator[Query]:
    with broker(topics={"t": 2}) as it:
        try:
            yield Query(it.bootstrap_servers, "t")
        finally:
            host().close()


def writer(query: Query) -> ExactlyOnceWriter:
    options = {
        "kafka.bootstrap.servers": query.servers,
        "topic": query.topic,
        "delivery.guarantee": "exactly-once",
    }
    return ExactlyOnceWriter(options, SCHEMA)


def test_messages_of_all_tasks_are_committed(query: Query) -> None:
    writer(query).commit([*query.tasks(0, count=2), query.task(2, [])], 0)

    assert [*rows(0, 0), *rows(0, 1)] == query.committed()


@pytest.mark.parametrize("other", [None, WriterCommitMessage()], ids=["none", "another's"])
def test_task_without_a_message_is_not_forgotten(
    query: Query, other: WriterCommitMessage | None
) -> None:
    """Its rows would be lost."""
    tasks = query.tasks(0)
    with pytest.raises(TrionetError, match="1 of 3 tasks have no commit message"):
        writer(query).commit([tasks[0], other, tasks[2]], 0)

    assert [] == query.committed()
    writer(query).abort([tasks[0], other, tasks[2]], 0)
    assert [] == query.open()


def test_micro_batch_has_a_task(query: Query) -> None:
    """Spark makes one for a plan without partitions (SPARK-23271)."""
    with pytest.raises(TrionetError, match="micro-batch 3, 0 of 0 tasks have no commit message"):
        writer(query).commit([], 3)
    writer(query).commit([query.task(0, [])], 3)


def test_abort_without_a_message_leaves_all_to_the_next_commit(query: Query) -> None:
    """Only messages say which query it is."""
    left = query.task(0, rows(0, 0), attempt=1)
    writer(query).abort([None, None], 0)

    assert left.transaction is not None
    assert [left.transaction.transactional_id] == query.open()
    writer(query).commit(query.tasks(0, count=1), 0)
    assert [] == query.open()
    assert rows(0, 0) == query.committed()
