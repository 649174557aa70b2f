"""What a task of a sink writes, and when it fails; without Spark, against our broker."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import BinaryType, DataType, IntegerType, StringType, StructField, StructType

from trionet.client._topic_partition import TopicPartition
from trionet.client.producer.batching._topic_queues import partition_of
from trionet.errors import (
    ConfigError,
    MetadataTimeoutError,
    RecordTooLargeError,
    SendBatchError,
)
from trionet.protocol.records.columnar._arrow_columns import HEADERS
from trionet.spark._loop_host import host
from trionet.spark._options import SinkOptions
from trionet.spark.sink._columns import Batch, NullTopicError
from trionet.spark.sink._messages import Span, TaskWritten
from trionet.spark.sink._schema import SinkColumnsError
from trionet.spark.sink._task import SinkTask, write_task
from trionet.spark.sink._writers import BatchWriter, StreamWriter
from trionet.testing import Record, ThreadedBroker, broker


@pytest.fixture(scope="module")
def cluster() -> Iterator[ThreadedBroker]:
    with broker(topics={"t": 1, "three": 3, "keyed": 3}, auto_create_topics_enable=False) as it:
        try:
            yield it
        finally:
            host().close()


def options_of(cluster: ThreadedBroker, topic: str | None = "t", **client: str) -> SinkOptions:
    given = {f"kafka.{key.replace('_', '.')}": text for key, text in client.items()}
    if topic is not None:
        given["topic"] = topic
    return SinkOptions.parse({"kafka.bootstrap.servers": cluster.bootstrap_servers} | given)


def records_of(cluster: ThreadedBroker, topic: str, count: int) -> list[Record]:
    """The last so many records of a topic, once they are there."""
    return cluster.wait_for_records(topic, count=1)[-count:]


def texts(*values: str | None, **columns: object) -> Batch:
    return pa.record_batch({"value": pa.array(values, pa.string()), **columns})


def test_a_task_reports_what_it_has_written(cluster: ThreadedBroker) -> None:
    first = write_task(options_of(cluster), iter([texts("1", "2"), texts("3")])).written
    second = write_task(options_of(cluster), iter([texts("4")])).written

    at = TopicPartition("t", 0)
    begin = first[at].first
    assert {at: Span(begin, begin + 2, 3)} == first
    assert {at: Span(begin + 3, begin + 3, 1)} == second
    assert [b"1", b"2", b"3", b"4"] == [each.value for each in records_of(cluster, "t", 4)]


def test_a_task_without_rows_connects_to_no_broker() -> None:
    """Spark runs a task for an empty partition, too."""
    options = SinkOptions.parse({"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "t"})

    assert {} == write_task(options, iter([])).written
    assert {} == write_task(options, iter([texts()])).written


def test_keys_headers_and_partitions_are_written(cluster: ThreadedBroker) -> None:
    columns = {
        "key": pa.array([b"k", None, b"k"]),
        "partition": pa.array([2, 2, 0], pa.int32()),
        "topic": ["three"] * 3,
        "headers": pa.array([[{"key": "h", "value": b"1"}], None, None], HEADERS),
    }
    written = write_task(options_of(cluster, None), iter([texts("1", "2", None, **columns)]))

    assert {2: 2, 0: 1} == {at.partition: span.count for at, span in written.written.items()}
    assert [
        (0, b"k", None, ()),
        (2, b"k", b"1", (("h", b"1"),)),
        (2, None, b"2", ()),
    ] == [
        (each.partition, each.key, each.value, each.headers)
        for each in sorted(cluster.wait_for_records("three", count=3))
    ]


def test_rows_of_a_key_keep_their_order_however_many_come_at_a_time(
    cluster: ThreadedBroker,
) -> None:
    """Many are put in order of their partitions; of few, the producer finds the partition."""
    keys = [f"k{number % 17}" for number in range(400)]
    values = [str(number) for number in range(400)]
    bounds = [(0, 10), (10, 300), (300, 310), (310, 400)]
    batches = [texts(*values[a:b], key=pa.array(keys[a:b])) for a, b in bounds]

    written = write_task(options_of(cluster, "keyed"), iter(batches)).written

    found = cluster.wait_for_records("keyed", count=400)
    assert 400 == len(found)
    for key in set(keys):
        its = [each for each in found if each.key == key.encode()]
        wanted = [v.encode() for k, v in zip(keys, values, strict=True) if k == key]
        assert wanted == [each.value for each in its]
        assert {partition_of(key.encode(), 3)} == {each.partition for each in its}
    counts = dict.fromkeys(range(3), 0)
    for each in found:
        counts[each.partition] += 1
    assert {
        TopicPartition("keyed", number): Span(0, count - 1, count)
        for number, count in counts.items()
    } == written


def test_tasks_share_a_producer_until_one_fails(cluster: ThreadedBroker) -> None:
    """PO2, PO4: of one configuration there is one; after a failure the next task has a new one."""
    options = options_of(cluster, client_id="shared")

    def producer_of_a_task() -> object:
        task = SinkTask(options)
        task.put(texts("1"))
        task.end()
        return task.shared

    first = producer_of_a_task()
    assert first is producer_of_a_task()
    other = SinkTask(options_of(cluster, client_id="other"))
    other.put(texts("1"))
    other.end()
    assert first is not other.shared

    with pytest.raises(RecordTooLargeError, match=r"max\.request\.size"):
        write_task(options, iter([texts("1"), texts("x" * 2_000_000)]))
    assert first is not producer_of_a_task()


@pytest.mark.parametrize(
    ("topic", "client", "batch", "error", "text"),
    [
        (None, {}, texts("1", topic=pa.array([None], pa.string())), NullTopicError, "null topic"),
        ("t", {}, texts("x" * 2_000_000), RecordTooLargeError, "max.request.size"),
        (
            "none",
            {"max_block_ms": "100"},
            texts("1"),
            MetadataTimeoutError,
            "no metadata for topic 'none'",
        ),
        (
            "t",
            {"max_block_ms": "100"},
            texts("1", partition=pa.array([7], pa.int32())),
            MetadataTimeoutError,
            "no metadata for partition 7 of 't'",
        ),
    ],
)
def test_a_row_that_cannot_be_written_fails_the_task(
    cluster: ThreadedBroker,
    topic: str | None,
    client: dict[str, str],
    batch: Batch,
    error: type[Exception],
    text: str,
) -> None:
    with pytest.raises(error, match=text):
        write_task(options_of(cluster, topic, **client), iter([batch]))


def test_a_record_that_the_broker_refuses_fails_the_task(cluster: ThreadedBroker) -> None:
    """Nobody waits for each batch, yet none is forgotten."""
    cluster.create_topic("small", max_message_bytes=500)

    with pytest.raises(SendBatchError, match="1 of 2 records failed"):
        write_task(options_of(cluster, "small"), iter([texts("1", "x" * 1000), texts("3")]))


@pytest.mark.slow
def test_15_mb_go_through_a_buffer_of_16_kb(cluster: ThreadedBroker) -> None:
    """SI15: who finds no room waits for it."""
    batch = pa.record_batch({"value": [bytes(15_000)] * 100})
    options = options_of(cluster, buffer_memory="16384", max_block_ms="20000")

    written = write_task(options, iter([batch] * 10)).written

    assert 1000 == written[TopicPartition("t", 0)].count


def schema_of(**types: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in types.items()])


SERVERS = {"kafka.bootstrap.servers": "host:9092"}


def test_writers_are_made_without_a_connection_and_can_be_sent() -> None:
    schema = schema_of(topic=StringType(), value=BinaryType(), more=IntegerType())
    for writer in (
        BatchWriter(SERVERS, schema, overwrite=False),
        StreamWriter(SERVERS, schema),
    ):
        again = pickle.loads(pickle.dumps(writer))
        assert type(again) is type(writer)
    message = TaskWritten({TopicPartition("t", 0): Span(1, 2, 2)})
    assert message == pickle.loads(pickle.dumps(message))


@pytest.mark.parametrize(
    ("options", "schema", "error"),
    [
        ({}, schema_of(value=BinaryType(), topic=StringType()), ConfigError),
        (SERVERS, schema_of(value=BinaryType()), SinkColumnsError),
        (SERVERS | {"topic": "t"}, schema_of(value=IntegerType()), SinkColumnsError),
    ],
)
def test_mistakes_are_reported_before_anything_is_written(
    options: dict[str, str], schema: StructType, error: type[Exception]
) -> None:
    for make in (
        lambda: BatchWriter(options, schema, overwrite=False),
        lambda: StreamWriter(options, schema),
    ):
        with pytest.raises(error):
            make()


def test_a_topic_cannot_be_overwritten() -> None:
    with pytest.raises(SinkColumnsError, match="save mode overwrite not allowed"):
        BatchWriter(SERVERS, schema_of(value=BinaryType()), overwrite=True)


def test_what_was_written_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "trionet.spark")
    schema = schema_of(topic=StringType(), value=BinaryType())
    messages: list[WriterCommitMessage | None] = [
        TaskWritten({TopicPartition("t", 0): Span(5, 7, 3)}),
        None,
        TaskWritten(
            {TopicPartition("t", 0): Span(8, 8, 1), TopicPartition("t", 1): Span(-1, -1, 2)}
        ),
    ]

    StreamWriter(SERVERS, schema).commit(messages, 3)
    BatchWriter(SERVERS, schema, overwrite=False).abort([None])

    assert [
        "batch 3: 6 records written (t-0: 4 at offsets 5 to 8, t-1: 2)",
        "aborted; 0 records written by other tasks remain in the topics",
    ] == caplog.messages
