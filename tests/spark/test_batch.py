"""Topics as tables, in Spark (the connector: KafkaRelationSuite)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark.brokers import delete_records, numbers
from spark.streams import batch, values
from trionet.testing._threaded import ThreadedBroker

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

#: Runs with `python3 tests spark`; without, what every change has to pass.
more = pytest.mark.spark

COLUMNS = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp,"
    " timestampType int"
)


def seed_in_turns(kafka: ThreadedBroker, topic: str, first: int, last: int) -> None:
    """Numbers as values, to three partitions in turns, each at the time of its own value."""
    kafka.seed(
        topic,
        [{"partition": n % 3, "value": str(n), "timestamp": n} for n in range(first, last + 1)],
    )


@pytest.fixture
def twenty_one(kafka: ThreadedBroker, topic: str) -> str:
    """A topic of three partitions with 0 to 20 in them."""
    kafka.create_topic(topic, 3)
    seed_in_turns(kafka, topic, 0, 20)
    return topic


def test_a_table_has_the_columns_of_the_connector(
    spark: SparkSession, kafka: ThreadedBroker, topic: str
) -> None:
    """RE4: headers, and null where there are none."""
    kafka.create_topic(topic, 1)
    kafka.seed(
        topic,
        [
            {"key": "k", "value": "v", "timestamp": 1500, "headers": {"a": "b", "c": None}},
            {"value": None, "timestamp": 2000},
        ],
    )

    plain = batch(spark, kafka, subscribe=topic)
    table = batch(spark, kafka, subscribe=topic, includeHeaders=True)

    headers = ", headers array<struct<key:string,value:binary>>"
    assert spark.createDataFrame([], COLUMNS).schema == plain.schema
    assert spark.createDataFrame([], COLUMNS + headers).schema == table.schema
    first, second = table.orderBy("offset").collect()
    at = datetime.fromtimestamp(1.5, UTC).replace(tzinfo=None)
    assert (b"k", b"v", topic, 0, 0) == first[:5]
    assert (0, [("a", b"b"), ("c", None)]) == first[6:]
    assert [at] == [
        datetime.fromisoformat(row.t)
        for row in table.where("offset = 0").selectExpr("cast(timestamp as string) t").collect()
    ]
    assert (None, None, topic, 0, 1) == second[:5]
    assert (0, None) == second[6:]


def test_both_ends_are_bound_when_the_table_is_read(
    spark: SparkSession, kafka: ThreadedBroker, twenty_one: str
) -> None:
    """RE1, RE2: from earliest to latest, said or not; a table that is read again has the rest."""
    said = batch(
        spark, kafka, subscribe=twenty_one, startingOffsets="earliest", endingOffsets="latest"
    )
    unsaid = batch(spark, kafka, subscribe=twenty_one)
    assert numbers(0, 20) == values(said)

    seed_in_turns(kafka, twenty_one, 21, 29)

    assert numbers(0, 29) == values(said)
    assert numbers(0, 29) == values(unsaid)


def test_offsets_are_bound_late_where_they_are_no_numbers(
    spark: SparkSession, kafka: ThreadedBroker, twenty_one: str
) -> None:
    """RE3: from and to offsets; -1 is bound late, numbers are not."""
    table = batch(
        spark,
        kafka,
        subscribe=twenty_one,
        startingOffsets={twenty_one: {"0": -2, "1": 2, "2": 0}},
        endingOffsets={twenty_one: {"0": -1, "1": 4, "2": 1}},
    )
    assert sorted(["0", "3", "6", "9", "12", "15", "18", "7", "10", "2"]) == values(table)

    seed_in_turns(kafka, twenty_one, 21, 23)

    assert sorted(["0", "3", "6", "9", "12", "15", "18", "21", "7", "10", "2"]) == values(table)


def times(topic: str, *each: int) -> dict[str, dict[str, int]]:
    return {topic: {str(partition): time for partition, time in enumerate(each)}}


@more
@pytest.mark.parametrize(
    ("options", "first", "last"),
    [
        pytest.param(
            {"startingOffsetsByTimestamp": (7, 7, 7), "endingOffsetsByTimestamp": (13, 13, 13)},
            7,
            12,
            id="RE5",
        ),
        pytest.param(
            {"startingOffsetsByTimestamp": (7, 7, 7), "endingOffsets": (4, 4, 4)},
            7,
            11,
            id="RE6",
        ),
        pytest.param(
            {"startingOffsets": (2, 2, 2), "endingOffsetsByTimestamp": (13, 13, 13)},
            6,
            12,
            id="RE7",
        ),
        pytest.param({"startingOffsetsByTimestamp": (7, 7, 7)}, 7, 20, id="RE8"),
        pytest.param({"endingOffsetsByTimestamp": (13, 13, 13)}, 0, 12, id="RE9"),
        pytest.param({"startingTimestamp": 7, "endingTimestamp": 13}, 7, 12, id="RE10"),
        pytest.param({"startingTimestamp": 7, "endingTimestamp": 99}, 7, 20, id="RE13"),
        pytest.param(
            {
                "startingTimestamp": 7,
                "startingOffsetsByTimestamp": (9, 9, 9),
                "startingOffsets": (3, 3, 3),
                "endingTimestamp": 13,
                "endingOffsetsByTimestamp": (15, 15, 15),
                "endingOffsets": (6, 6, 6),
            },
            7,
            12,
            id="RE12",
        ),
    ],
)
def test_a_table_is_between_times_or_offsets(
    spark: SparkSession,
    kafka: ThreadedBroker,
    twenty_one: str,
    options: dict[str, object],
    first: int,
    last: int,
) -> None:
    """RE5, RE6, RE7, RE8, RE9, RE10, RE12, RE13: see the names of the cases."""
    given = {
        name: times(twenty_one, *value) if isinstance(value, tuple) else value
        for name, value in options.items()
    }

    assert numbers(first, last) == values(batch(spark, kafka, subscribe=twenty_one, **given))


@more
def test_no_record_is_as_late_as_the_begin(
    spark: SparkSession, kafka: ThreadedBroker, twenty_one: str
) -> None:
    """RE11: no match for where to begin: no offset matched; or the latest, if that is said."""
    late = {"subscribe": twenty_one, "startingTimestamp": 99}

    with pytest.raises(PySparkException, match="matched the timestamp 99"):
        values(batch(spark, kafka, **late))

    strategy = {"startingOffsetsByTimestampStrategy": "latest"}
    assert [] == values(batch(spark, kafka, **late, **strategy))


@more
def test_a_union_with_itself_has_all_rows_twice(
    spark: SparkSession, kafka: ThreadedBroker, twenty_one: str
) -> None:
    """RE14: a union with itself."""
    table = batch(spark, kafka, subscribe=twenty_one)

    assert sorted(numbers(0, 20) * 2) == values(table.union(table))


def test_a_table_used_twice_has_all_rows_in_both_places(
    spark: SparkSession, kafka: ThreadedBroker, twenty_one: str
) -> None:
    """A source that prunes by filters gives wrong rows here: Spark shares its reader."""
    table = batch(spark, kafka, subscribe=twenty_one)

    assert (7, 21) == (table.where("partition = 1").count(), table.count())


def test_partitions_are_cut_and_their_ends_stay_open(
    spark: SparkSession, kafka: ThreadedBroker, twenty_one: str
) -> None:
    """RE18: minPartitions: at least so many tasks, all rows, bound late (SPARK-30656)."""
    table = batch(spark, kafka, subscribe=twenty_one, minPartitions=6)
    assert table.rdd.getNumPartitions() >= 6
    assert numbers(0, 20) == values(table)

    seed_in_turns(kafka, twenty_one, 21, 23)

    assert numbers(0, 23) == values(table)


@more
def test_no_task_is_longer_than_it_may_be(
    spark: SparkSession, kafka: ThreadedBroker, twenty_one: str
) -> None:
    bounds = {
        "startingOffsets": {twenty_one: dict.fromkeys("012", 0)},
        "endingOffsets": {twenty_one: dict.fromkeys("012", 7)},
    }
    table = batch(spark, kafka, subscribe=twenty_one, maxRecordsPerPartition=2, **bounds)

    assert 12 == table.rdd.getNumPartitions()
    assert numbers(0, 20) == values(table)


@more
def test_a_task_from_earliest_to_latest_may_have_any_length(
    spark: SparkSession, kafka: ThreadedBroker, twenty_one: str
) -> None:
    """Its size is unknown before it is read (KafkaOffsetReaderAdmin)."""
    table = batch(spark, kafka, subscribe=twenty_one, maxRecordsPerPartition=2)

    assert 3 == table.rdd.getNumPartitions()
    assert numbers(0, 20) == values(table)


@more
@pytest.mark.parametrize("how", ["assign", "subscribe", "subscribePattern"])
def test_a_table_is_of_the_partitions_that_were_named(
    spark: SparkSession, kafka: ThreadedBroker, twenty_one: str, how: str
) -> None:
    ways: dict[str, dict[str, object]] = {
        "assign": {"assign": {twenty_one: [0, 1, 2]}},
        "subscribe": {"subscribe": f"{twenty_one}"},
        "subscribePattern": {"subscribePattern": f"{twenty_one[1:]}$"},
    }

    assert numbers(0, 20) == values(batch(spark, kafka, **ways[how]))


@more
def test_an_empty_topic_is_an_empty_table(
    spark: SparkSession, kafka: ThreadedBroker, topic: str
) -> None:
    kafka.create_topic(topic, 2)

    assert 0 == batch(spark, kafka, subscribe=topic).count()
    assert 0 == batch(spark, kafka, subscribePattern=f"{topic}-other").count()


def test_records_that_are_gone_are_left_out(
    spark: SparkSession, kafka: ThreadedBroker, twenty_one: str
) -> None:
    """RE15, DL3: the earliest is bound late; without failOnDataLoss nothing is read twice."""
    everything = batch(spark, kafka, subscribe=twenty_one)
    numbered = {
        "subscribe": twenty_one,
        "startingOffsets": times(twenty_one, 0, 0, 0),
        "endingOffsets": times(twenty_one, 7, 7, 7),
    }
    tolerant = batch(spark, kafka, failOnDataLoss=False, **numbered)
    strict = batch(spark, kafka, **numbered)
    assert numbers(0, 20) == values(everything)

    delete_records(kafka, twenty_one, 5)

    assert numbers(15, 20) == values(everything)
    assert numbers(15, 20) == values(tolerant)
    with pytest.raises(PySparkException, match=f"{twenty_one}-.*failOnDataLoss"):
        values(strict)


@more
def test_a_user_gives_no_columns(
    spark: SparkSession, kafka: ThreadedBroker, twenty_one: str
) -> None:
    reader = spark.read.format("trionet").schema("value string")
    reader = reader.option("kafka.bootstrap.servers", kafka.bootstrap_servers)

    with pytest.raises(PySparkException, match="columns of this source are fixed"):
        reader.option("subscribe", twenty_one).load().collect()


@more
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "one of these options must be specified"),
        ({"subscribe": "t", "startingOffsets": "latest"}, "starting offset can't be latest"),
        ({"subscribe": "t", "kafka.group.protocl": "x"}, "kafka.group.protocl"),
        ({"subscribe": "t", "startOffsets": "earliest"}, "startingOffsets"),
    ],
)
def test_a_mistake_is_reported_before_anything_is_read(
    spark: SparkSession, kafka: ThreadedBroker, options: dict[str, str], message: str
) -> None:
    with pytest.raises(PySparkException, match=message):
        batch(spark, kafka, **options).collect()


@more
def test_a_topic_that_does_not_exist_is_reported(
    spark: SparkSession, kafka: ThreadedBroker, topic: str
) -> None:
    with pytest.raises(PySparkException, match=topic):
        batch(spark, kafka, subscribe=topic).collect()
