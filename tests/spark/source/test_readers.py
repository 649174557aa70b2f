"""What Spark calls to plan and read a stream, called here without Spark: no Java is needed."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from random import Random

import pytest

import trionet
from spark.brokers import SETTINGS, add_partitions, delete_records, numbers
from trionet.client._topic_partition import TopicPartition
from trionet.spark._loop_host import host
from trionet.spark._offset_limits import (
    DataLossError,
    OffsetChangedError,
    PartitionsDeletedError,
    UnreadRangeError,
    from_plain,
    start_in,
)
from trionet.testing._threaded import ThreadedBroker

pytest.importorskip("pyspark", reason="PySpark cannot be imported: pip install 'trionet[spark]'")

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable

from spark import reading
from spark.reading import Query, read
from trionet.spark.source._readers import StreamReader

pytestmark = pytest.mark.slow

ONCE = ReadAllAvailable()


@pytest.fixture(scope="module")
def broker() -> Iterator[ThreadedBroker]:
    with trionet.testing.broker(SETTINGS) as running:
        yield running
        host().close()


def opened(broker: ThreadedBroker, **options: object) -> StreamReader:
    return reading.opened(broker.bootstrap_servers, **options)


def seed(broker: ThreadedBroker, topic: str, first: int, last: int, partition: int = 0) -> None:
    each = range(first, last + 1)
    broker.seed(topic, [{"partition": partition, "value": str(n), "timestamp": n} for n in each])


@pytest.fixture
def topic(broker: ThreadedBroker, request: pytest.FixtureRequest) -> str:
    name = f"r{abs(hash(request.node.nodeid)):x}"
    broker.create_topic(name, 1)
    return name


def test_where_a_query_begins_stays_however_often_it_is_asked(
    broker: ThreadedBroker, topic: str
) -> None:
    reader = opened(broker, subscribe=topic)
    first = reader.initialOffset()
    seed(broker, topic, 0, 4)

    assert {topic: {"0": 0}} == first == reader.initialOffset()


def test_the_latest_offsets_are_reported_without_asking_again(
    broker: ThreadedBroker, topic: str
) -> None:
    reader = opened(broker, subscribe=topic)
    assert reader.reportLatestOffset() is None
    start = reader.initialOffset()
    reader.latestOffset(start, reader.getDefaultReadLimit())
    before = len(broker.requests("ListOffsets"))
    seed(broker, topic, 0, 4)

    assert {topic: {"0": 0}} == reader.reportLatestOffset()
    assert before == len(broker.requests("ListOffsets"))


@pytest.mark.parametrize("limit", [1, 9_223_372_036_854_775_807])
def test_a_limit_never_reads_past_the_end(broker: ThreadedBroker, topic: str, limit: int) -> None:
    """MB3: the largest maxOffsetsPerTrigger does not overflow (SPARK-26718)."""
    seed(broker, topic, 0, 1)
    query = Query(
        opened(broker, subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger=limit)
    )

    batches = [query.next(), query.next(), query.next()]

    assert [*map(str, range(2))] == [value for batch in batches for value in batch]
    assert [] == batches[-1]


def test_partitions_share_a_limit_by_what_waits_in_them(broker: ThreadedBroker, topic: str) -> None:
    """MB4: maxOffsetsPerTrigger: the rows of each batch, also after a restart."""
    add_partitions(broker, topic, 3)
    seed(broker, topic, 100, 200, 0)
    seed(broker, topic, 10, 20, 1)
    seed(broker, topic, 1, 1, 2)
    options = {"subscribe": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": 10}
    query = Query(opened(broker, **options))

    first = query.next()
    restarted = Query(opened(broker, **options), query.start)
    second = restarted.next()

    assert sorted(["1", "10", *map(str, range(100, 108))]) == first
    assert sorted(["11", *map(str, range(108, 117))]) == second


def test_a_micro_batch_waits_for_enough(broker: ThreadedBroker, topic: str) -> None:
    """MB6, MB7: minOffsetsPerTrigger: the rows of each batch, the delay; Once ignores it."""
    options = {"subscribe": topic, "startingOffsets": "earliest", "minOffsetsPerTrigger": 5}
    seed(broker, topic, 0, 1)
    query = Query(opened(broker, **options))
    assert numbers(0, 1) == query.next()  # the first never waits
    seed(broker, topic, 2, 4)
    assert [] == query.next()
    assert numbers(2, 4) == read(
        query.reader, query.start, query.reader.latestOffset(query.start, ONCE)
    )
    seed(broker, topic, 5, 6)
    assert numbers(2, 6) == query.next()

    seed(broker, topic, 7, 7)
    impatient = Query(opened(broker, maxTriggerDelay="0s", **options), query.start)
    assert numbers(7, 7) == impatient.next()


def test_least_and_most_hold_together(broker: ThreadedBroker, topic: str) -> None:
    """MB8, MB9: the rows of each batch, and the delay; both are ignored by Trigger.Once."""
    options = {
        "subscribe": topic,
        "startingOffsets": "earliest",
        "minOffsetsPerTrigger": 3,
        "maxOffsetsPerTrigger": 4,
    }
    seed(broker, topic, 0, 9)
    query = Query(opened(broker, **options))

    assert numbers(0, 3) == query.next()
    assert numbers(4, 7) == query.next()
    assert [] == query.next()
    end = query.reader.latestOffset(query.start, ONCE)
    assert {topic: {"0": 10}} == end


def test_a_run_of_available_now_ends_where_it_has_begun(broker: ThreadedBroker, topic: str) -> None:
    """What comes meanwhile is for the next run; the least does not keep it waiting."""
    seed(broker, topic, 0, 1)
    reader = opened(broker, subscribe=topic, minOffsetsPerTrigger=100, startingOffsets="earliest")
    reader.prepareForTriggerAvailableNow()
    query = Query(reader)
    assert numbers(0, 1) == query.next()
    seed(broker, topic, 2, 9)

    assert [[], []] == [query.next() for _ in range(2)]


@pytest.mark.parametrize("begin", ["latest", "time"])
def test_a_run_of_available_now_does_not_end_before_it_begins(
    broker: ThreadedBroker, topic: str, begin: str
) -> None:
    """The end is found after the start: what comes between them is in the run."""
    seed(broker, topic, 0, 1)
    options = {"startingOffsets": "latest"} if begin == "latest" else {"startingTimestamp": 8}
    reader = opened(broker, subscribe=topic, **options)
    reader.prepareForTriggerAvailableNow()
    seed(broker, topic, 2, 9)
    query = Query(reader)
    assert {topic: {"0": 10 if begin == "latest" else 8}} == query.start
    seed(broker, topic, 10, 11)

    assert numbers(10 if begin == "latest" else 8, 11) == query.next()
    seed(broker, topic, 12, 13)
    assert [] == query.next()


@pytest.mark.parametrize("limit", [None, 3])
@pytest.mark.parametrize("trigger", ["now", "once", "interval"])
@pytest.mark.parametrize("begin", ["earliest", "latest", "time", "offsets"])
def test_the_first_micro_batch_is_repeated_with_its_rows(
    broker: ThreadedBroker, topic: str, begin: str, trigger: str, limit: int | None
) -> None:
    """Its end names its start, which may be another one when it is looked for again."""
    seed(broker, topic, 0, 4)
    starts = {"latest": "latest", "offsets": json.dumps({topic: {"0": 1}})}
    options = {"subscribe": topic, "startingOffsets": starts.get(begin, "earliest")}
    if begin == "time":
        options["startingTimestamp"] = "1"
    if limit:
        options["maxOffsetsPerTrigger"] = str(limit)
    query = Query(opened(broker, **options))
    if trigger == "now":
        query.reader.prepareForTriggerAvailableNow()
    query.limit = ONCE if trigger == "once" else query.limit
    start = query.start
    seed(broker, topic, 5, 9)
    first = query.next()
    logged = json.loads(json.dumps(query.start))
    seed(broker, topic, 10, 14)

    again = opened(broker, **options)
    repeated = [read(again, again.initialOffset(), logged) for _ in range(2)]

    assert first
    assert [first, first] == repeated
    assert from_plain(start) == start_in(logged)
    rest = Query(again, logged)
    found = [*first]
    while rows := rest.next():
        found += rows
    assert numbers({"earliest": 0, "latest": 5}.get(begin, 1), 14) == sorted(found)


def test_the_start_in_the_first_end_is_not_a_partition(broker: ThreadedBroker, topic: str) -> None:
    """The end of the first micro-batch stays the position of the query until there are records."""
    seed(broker, topic, 0, 4)
    query = Query(opened(broker, subscribe=topic, startingOffsets="earliest"))
    query.next()
    first = query.start

    assert {TopicPartition(topic, 0): 5} == from_plain(first)
    assert first is query.reader.latestOffset(first, query.limit)
    assert [] == read(query.reader, first, first)
    seed(broker, topic, 5, 6)
    assert numbers(5, 6) == query.next()
    assert {topic: {"0": 7}} == query.start


BEGINS: Mapping[str, dict[str, str]] = {
    "earliest": {"startingOffsets": "earliest"},
    "earliest by number": {"startingOffsets": '{"%s":{"0":-2}}'},
    "a time": {"startingTimestamp": "1"},
    "a time for each": {"startingOffsetsByTimestamp": '{"%s":{"0":1}}'},
}


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("before", [3, 10], ids=["some", "all"])
@pytest.mark.parametrize("begin", BEGINS)
def test_what_is_deleted_before_the_first_read_is_no_loss(
    broker: ThreadedBroker, topic: str, begin: str, before: int, parts: int
) -> None:
    """The query begins with what is there: it would have done so if it had started later."""
    seed(broker, topic, 0, 9)
    options = {key: text.replace("%s", topic) for key, text in BEGINS[begin].items()}
    query = Query(opened(broker, subscribe=topic, minPartitions=parts, **options))
    end = query.reader.latestOffset(query.start, query.limit)
    ranges = query.reader.partitions(query.start, end)

    delete_records(broker, topic, before)

    assert parts == len(ranges)
    batches = [batch for each in ranges for batch in query.reader.read(each)]
    values = [each for batch in batches for each in batch.column("value").to_pylist()]
    assert [b"%d" % number for number in range(before, 10)] == values


def test_what_is_deleted_before_the_first_micro_batch_is_repeated_is_a_loss(
    broker: ThreadedBroker, topic: str
) -> None:
    """The run before may have read and written some of it."""
    seed(broker, topic, 0, 9)
    options = {"subscribe": topic, "startingOffsets": "earliest"}
    query = Query(opened(broker, **options))
    end = query.reader.latestOffset(query.start, ONCE)
    delete_records(broker, topic, 3)

    again = opened(broker, **options)
    with pytest.raises(UnreadRangeError, match=r"no longer has the records in \[0, 3\)"):
        read(again, again.initialOffset(), end)
    tolerant = opened(broker, **options, failOnDataLoss=False)
    assert numbers(3, 9) == read(tolerant, tolerant.initialOffset(), end)


def test_offsets_that_are_deleted_before_the_first_read_are_a_loss(
    broker: ThreadedBroker, topic: str
) -> None:
    """They were asked for."""
    seed(broker, topic, 0, 9)
    start = json.dumps({topic: {"0": 2}})
    query = Query(opened(broker, subscribe=topic, startingOffsets=start))
    delete_records(broker, topic, 3)

    with pytest.raises(UnreadRangeError, match=r"no longer has the records in \[2, 3\)"):
        query.next()


def test_what_is_deleted_after_the_first_micro_batch_is_a_loss(
    broker: ThreadedBroker, topic: str
) -> None:
    seed(broker, topic, 0, 9)
    options = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": 4}
    query = Query(opened(broker, subscribe=topic, **options))
    assert numbers(0, 3) == query.next()
    delete_records(broker, topic, 6)

    with pytest.raises(UnreadRangeError, match=r"no longer has the records in \[4, 6\)"):
        query.next()


@pytest.mark.parametrize("begin", ["earliest", "latest", "{connector}"])
def test_the_first_micro_batch_of_the_connector_is_read_once_more(
    broker: ThreadedBroker, topic: str, begin: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It is not empty; of `latest` nobody but the connector knows where it began, which is told."""
    seed(broker, topic, 1, 5)
    connector, end = {topic: {"0": 2}}, {topic: {"0": 5}}  # sources/0/0, offsets/0
    seed(broker, topic, 6, 7)
    begin = json.dumps(connector) if begin == "{connector}" else begin
    reader = opened(broker, subscribe=topic, startingOffsets=begin)

    first = read(reader, reader.initialOffset(), end)

    assert {"earliest": numbers(1, 5), "latest": []}.get(begin, numbers(3, 5)) == first
    assert ("sources/0/0" in caplog.text) is (begin == "latest")
    assert numbers(6, 7) == Query(reader, end).next()


def test_nothing_new_is_the_start_itself(broker: ThreadedBroker, topic: str) -> None:
    """Spark compares texts, in which the order counts."""
    add_partitions(broker, topic, 12)
    reader = opened(broker, subscribe=topic)
    start = {topic: {str(number): 0 for number in reversed(range(12))}}

    assert start is reader.latestOffset(start, reader.getDefaultReadLimit())


FROM: Mapping[str, tuple[dict[str, str], int]] = {
    "latest": ({"startingOffsets": "latest"}, 5),
    "earliest": ({"startingOffsets": "earliest"}, 0),
    "specific offsets": ({"startingOffsets": '{"%s":{"0":2}}'}, 2),
    "specific timestamps": ({"startingOffsetsByTimestamp": '{"%s":{"0":3}}'}, 3),
    "a global timestamp": ({"startingTimestamp": "4"}, 4),
}
BY = {
    "assign": ("assign", '{"%s":[0]}'),
    "subscribe": ("subscribe", "%s"),
    "subscribePattern": ("subscribePattern", "^%s$"),
}


@pytest.mark.parametrize("loss", ["true", "false"])
@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("begin", FROM)
def test_a_query_begins_where_its_options_say(
    broker: ThreadedBroker, topic: str, begin: str, by: str, loss: str
) -> None:
    """SB2, SB4, SB5, SB7, SB8, SB9, SB10, SB11, SB12, SB13, SB14, SB15, SB16: by every way."""
    options, first = FROM[begin]
    seed(broker, topic, 0, 4)
    name, value = BY[by]
    given = {key: text.replace("%s", topic) for key, text in {**options, name: value}.items()}
    query = Query(opened(broker, failOnDataLoss=loss, **given))
    seed(broker, topic, 5, 9)

    assert numbers(first, 9) == query.next()
    seed(broker, topic, 10, 14)
    again = Query(opened(broker, failOnDataLoss=loss, **given), query.start)
    assert numbers(10, 14) == again.next()


@pytest.mark.parametrize("by", ["subscribe", "subscribePattern"])
@pytest.mark.parametrize("begin", ["specific timestamps", "a global timestamp"])
def test_no_record_is_as_late_as_a_query_is_to_begin_at(
    broker: ThreadedBroker, topic: str, by: str, begin: str
) -> None:
    """SB17, SB18, SB19, SB20: timestamps without a match: an error, or the latest."""
    seed(broker, topic, 0, 4)
    options = {
        "specific timestamps": {"startingOffsetsByTimestamp": f'{{"{topic}":{{"0":99}}}}'},
        "a global timestamp": {"startingTimestamp": "99"},
    }[begin]

    with pytest.raises(trionet.TrionetError, match="matched the timestamp 99"):
        opened(broker, **{by: topic}, **options).initialOffset()

    lenient = opened(broker, **{by: topic}, **options, startingOffsetsByTimestampStrategy="latest")
    assert {topic: {"0": 5}} == lenient.initialOffset()


def test_new_partitions_are_read_from_their_begin(broker: ThreadedBroker, topic: str) -> None:
    query = Query(opened(broker, subscribe=topic))
    add_partitions(broker, topic, 2)
    seed(broker, topic, 0, 4, 1)

    assert numbers(0, 4) == query.next()


def test_a_new_partition_whose_first_records_are_gone_is_a_loss(
    broker: ThreadedBroker, topic: str
) -> None:
    query = Query(opened(broker, subscribe=topic))
    tolerant = Query(opened(broker, subscribe=topic, failOnDataLoss="false"))
    add_partitions(broker, topic, 2)
    seed(broker, topic, 0, 4, 1)
    delete_from_one(broker, topic)

    assert numbers(2, 4) == tolerant.next()
    with pytest.raises(DataLossError, match=f"{topic}-1 starts at offset 2 rather than 0"):
        query.next()


def delete_from_one(broker: ThreadedBroker, topic: str) -> None:
    seed(broker, topic, 5, 6, 0)
    delete_records(broker, topic, 2)


def test_ranges_are_cut_for_more_tasks(broker: ThreadedBroker, topic: str) -> None:
    """MB24: minPartitions: at least so many tasks, all rows (SPARK-30656)."""
    seed(broker, topic, 0, 9)
    reader = opened(broker, subscribe=topic, startingOffsets="earliest", minPartitions=4)
    start, end = {topic: {"0": 0}}, {topic: {"0": 10}}

    assert 4 == len(reader.partitions(start, end))
    assert numbers(0, 9) == read(reader, start, end)


def test_nulls_are_read_as_such(broker: ThreadedBroker, topic: str) -> None:
    """MB23: keys and values that are null (SPARK-27494)."""
    broker.seed(topic, [(None, None), ("k", None), (None, "v")])
    reader = opened(broker, subscribe=topic, startingOffsets="earliest")

    [partition] = reader.partitions({topic: {"0": 0}}, {topic: {"0": 3}})
    rows = [row for batch in reader.read(partition) for row in batch.to_pylist()]

    assert [(None, None), (b"k", None), (None, b"v")] == [(r["key"], r["value"]) for r in rows]


def test_no_partition_has_no_records(broker: ThreadedBroker, topic: str) -> None:
    assert [] == list(opened(broker, subscribe=topic).read(InputPartition(None)))


def test_stopping_and_committing_do_nothing(broker: ThreadedBroker, topic: str) -> None:
    reader: DataSourceStreamReader = opened(broker, subscribe=topic)

    reader.commit({topic: {"0": 0}})
    reader.stop()


def test_a_topic_that_is_deleted_while_it_is_read_is_let_go(
    broker: ThreadedBroker, topic: str
) -> None:
    """MB17: a topic is deleted while a job runs, without failOnDataLoss."""
    for number in range(10):
        seed(broker, topic, number, number)
    options = {
        "subscribePattern": topic,
        "startingOffsets": "earliest",
        "failOnDataLoss": False,
        "kafka_max_partition_fetch_bytes": 1,  # one record at a time, as each is a batch
        "kafkaConsumer_pollTimeoutMs": 200,
    }
    query = Query(opened(broker, **options))
    end = query.reader.latestOffset(query.start, query.limit)
    [partition] = query.reader.partitions(query.start, end)
    batches = query.reader.read(partition)
    first = next(batches).column("value").to_pylist()

    broker.delete_topic(topic)
    rest = [each for batch in batches for each in batch.column("value").to_pylist()]

    found = [*first, *rest]
    assert [b"%d" % number for number in range(len(found))] == found
    assert len(found) < 10
    query.start = end
    assert [] == query.next()
    broker.create_topic(f"{topic}-again", 1)
    seed(broker, f"{topic}-again", 10, 12)
    assert numbers(10, 12) == query.next()


@pytest.mark.parametrize("loss", [True, False])
def test_a_run_of_available_now_that_starts_beyond_the_end_is_a_loss(
    broker: ThreadedBroker, topic: str, loss: bool, caplog: pytest.LogCaptureFixture
) -> None:
    seed(broker, topic, 0, 4)
    start = json.dumps({topic: {"0": 500}})
    reader = opened(broker, subscribe=topic, startingOffsets=start, failOnDataLoss=loss)
    reader.prepareForTriggerAvailableNow()
    query = Query(reader)

    with pytest.raises(OffsetChangedError) if loss else contextlib.nullcontext():
        assert [] == query.next()
        assert "decreased from 500 to 5" in caplog.text
        assert {TopicPartition(topic, 0): 5} == from_plain(query.start)


@pytest.mark.parametrize("again", [0, 5, 8], ids=["empty", "as long", "longer"])
@pytest.mark.parametrize("by", ["subscribe", "subscribePattern"])
def test_a_topic_that_is_recreated_during_a_run_is_a_loss(
    broker: ThreadedBroker, topic: str, by: str, again: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Its id differs (KIP-516); offsets alone would not show that the first records are new."""
    seed(broker, topic, 0, 4)
    strict, tolerant = [
        Query(opened(broker, **{by: topic}, failOnDataLoss=loss, startingOffsets="earliest"))
        for loss in (True, False)
    ]
    assert numbers(0, 4) == strict.next() == tolerant.next()
    broker.delete_topic(topic)
    broker.create_topic(topic, 1)
    seed(broker, topic, 10, 10 + again - 1)

    with pytest.raises(OffsetChangedError, match=f"topic {topic} was recreated while"):
        strict.next()
    assert [*map(str, range(15, 10 + again))] == tolerant.next()
    assert f"topic {topic} was recreated while" in caplog.text
    caplog.clear()
    seed(broker, topic, 20, 21)
    assert numbers(20, 21)[-2:] == tolerant.next()[-2:]
    assert "recreated" not in caplog.text


@pytest.mark.parametrize("loss", [True, False])
def test_a_topic_that_is_recreated_while_a_micro_batch_waits_is_a_loss(
    broker: ThreadedBroker, topic: str, loss: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is planned while it is gone, so only its id shows it."""
    options = {"subscribe": topic, "failOnDataLoss": loss, "minOffsetsPerTrigger": 4}
    seed(broker, topic, 0, 4)
    query = Query(opened(broker, **options, startingOffsets="earliest"))
    assert numbers(0, 4) == query.next()
    broker.delete_topic(topic)
    assert [] == query.next()
    broker.create_topic(topic, 1)
    seed(broker, topic, 10, 19)

    with pytest.raises(OffsetChangedError) if loss else contextlib.nullcontext():
        assert [*map(str, range(15, 20))] == query.next()
        assert f"topic {topic} was recreated while" in caplog.text


def test_a_topic_that_is_recreated_before_the_first_micro_batch_is_a_loss(
    broker: ThreadedBroker, topic: str
) -> None:
    seed(broker, topic, 0, 4)
    query = Query(opened(broker, subscribe=topic))
    broker.delete_topic(topic)
    broker.create_topic(topic, 1)
    seed(broker, topic, 10, 19)

    with pytest.raises(OffsetChangedError, match=f"topic {topic} was recreated while"):
        query.next()


@pytest.mark.parametrize("by", ["assign", "subscribe", "subscribePattern"])
def test_a_topic_that_is_deleted_during_a_run_is_a_loss(
    broker: ThreadedBroker, topic: str, by: str, caplog: pytest.LogCaptureFixture
) -> None:
    seed(broker, topic, 0, 4)
    name, value = BY[by]
    strict, tolerant = [
        Query(opened(broker, **{name: value.replace("%s", topic)}, failOnDataLoss=loss))
        for loss in (True, False)
    ]
    assert [] == strict.next() == tolerant.next()
    broker.delete_topic(topic)

    with pytest.raises(PartitionsDeletedError, match=f"deleted: {topic}-0"):
        strict.next()
    assert [] == tolerant.next()
    assert f"deleted: {topic}-0" in caplog.text
    assert [] == tolerant.next()
    broker.create_topic(topic, 1)
    seed(broker, topic, 10, 11)
    assert numbers(10, 11) == tolerant.next()
    assert "recreated" not in caplog.text  # it was deleted, and its offsets with it


def test_topics_and_partitions_come_and_go_and_nothing_is_lost_or_doubled(
    broker: ThreadedBroker, topic: str
) -> None:
    """SB22: stress: topics and partitions come and go."""
    rng = Random(7)
    query = Query(
        opened(
            broker,
            subscribePattern=f"{topic}-.*",
            startingOffsets="earliest",
            failOnDataLoss=False,
        )
    )
    partitions: dict[str, int] = {}
    written: list[str] = []
    found: list[str] = []

    def come() -> None:
        name = f"{topic}-{len(written)}-{len(partitions)}"
        partitions[name] = rng.randint(1, 3)
        broker.create_topic(name, partitions[name])

    def go() -> None:
        look()  # what is deleted before it is read is lost
        if partitions:
            name = rng.choice(sorted(partitions))
            del partitions[name]
            broker.delete_topic(name)

    def grow() -> None:
        if partitions:
            name = rng.choice(sorted(partitions))
            partitions[name] += rng.randint(1, 2)
            add_partitions(broker, name, partitions[name])

    def write() -> None:
        if partitions:
            name = rng.choice(sorted(partitions))
            first = len(written)
            written.extend(map(str, range(first, first + rng.randint(1, 20))))
            where = rng.randrange(partitions[name])
            seed(broker, name, first, len(written) - 1, where)

    def look() -> None:
        found.extend(query.next())

    for _ in range(60):
        rng.choice([come, go, grow, write, write, write, look])()
    look()

    assert 100 < len(written)
    assert sorted(written) == sorted(found)
