"""What a task reads, and when it fails; without Spark, against our broker."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

import attrs
import pyarrow as pa
import pytest

from spark.brokers import delete_records
from spark.reading import table
from trionet.client._topic_partition import TopicPartition
from trionet.errors import ApiError, AuthenticationError, FetchTooLargeError
from trionet.spark._loop_host import host
from trionet.spark._offset_limits import (
    GlobalTimestamp,
    NoMatch,
    OffsetChangedError,
    OffsetsMismatchError,
    PartitionsDeletedError,
    UnreadRangeError,
)
from trionet.spark._options import SourceOptions
from trionet.spark._planning import OffsetRange
from trionet.spark.source._offset_reader import OffsetReader
from trionet.spark.source._range_reader import PollTimeoutError, read_range
from trionet.testing import ThreadedBroker, broker

EARLIEST, LATEST = -2, -1


@pytest.fixture(scope="module")
def cluster() -> Iterator[ThreadedBroker]:
    settings = {"log.retention.check.interval.ms": 3_600_000}
    with broker(settings, auto_create_topics_enable=False) as it:
        try:
            yield it
        finally:
            host().close()


@pytest.fixture
def topic(cluster: ThreadedBroker, request: pytest.FixtureRequest) -> str:
    """A topic of the test's own, with the values 0 to 9."""
    name = str(request.node.name).replace("[", ".").rstrip("]")
    cluster.create_topic(name, 1)
    cluster.seed(name, [{"value": b"%d" % each, "timestamp": 1000 + each} for each in range(10)])
    return name


def options_of(cluster: ThreadedBroker, topic: str, **options: str) -> SourceOptions:
    given = {key.replace("_", "."): text for key, text in options.items()}
    servers = {"kafka.bootstrap.servers": cluster.bootstrap_servers, "subscribe": topic}
    return SourceOptions.parse(servers | given, is_stream=True)


def reader_of(cluster: ThreadedBroker, topic: str, **options: str) -> OffsetReader:
    return OffsetReader(options_of(cluster, topic, **options))


def values(options: SourceOptions, wanted: OffsetRange) -> list[str]:
    found: list[Any] = []
    for each in read_range(options, wanted):
        found += each.column("value").to_pylist()
    return [each.decode() for each in found]


def planned(cluster: ThreadedBroker, topic: str, start: int, until: int) -> OffsetRange:
    """A range with the id that the topic has now."""
    reader = reader_of(cluster, topic)
    host().call(reader.partitions)
    return OffsetRange(topic, 0, start, until, reader.topic_ids[topic])


# Ranges.


def test_a_range_is_read_with_the_columns_of_the_connector(
    cluster: ThreadedBroker, topic: str
) -> None:
    seed = {"key": b"k", "value": None, "headers": [("h", b"1")], "timestamp": 5}
    cluster.seed(topic, [seed])
    options = options_of(cluster, topic, includeHeaders="true")
    [batch] = read_range(options, planned(cluster, topic, 9, 11))

    nine, ten = batch.drop_columns(["timestamp"]).to_pylist()
    assert (None, b"9", topic, 0, 9, 0, None) == tuple(
        nine[each]
        for each in ("key", "value", "topic", "partition", "offset", "timestampType", "headers")
    )
    assert (b"k", None, [{"key": "h", "value": b"1"}]) == (ten["key"], ten["value"], ten["headers"])
    assert 5000 == batch.column("timestamp").cast(pa.int64())[1].as_py()


@pytest.mark.parametrize(
    ("start", "until", "expected"),
    [(0, 10, "0123456789"), (3, 7, "3456"), (EARLIEST, LATEST, "0123456789"), (7, LATEST, "789")],
)
def test_ranges_end_where_they_end(
    cluster: ThreadedBroker, topic: str, start: int, until: int, expected: str
) -> None:
    found = values(options_of(cluster, topic), planned(cluster, topic, start, until))

    assert expected == "".join(found)


def test_ends_that_are_left_open_are_those_of_the_moment(
    cluster: ThreadedBroker, topic: str
) -> None:
    options, wanted = options_of(cluster, topic), planned(cluster, topic, EARLIEST, LATEST)
    before = values(options, wanted)
    cluster.seed(topic, [b"new"])

    assert [*before, "new"] == values(options, wanted)
    assert pickle.loads(pickle.dumps((options, wanted))) == (options, wanted)


def test_many_fetches_make_one_range(cluster: ThreadedBroker, topic: str) -> None:
    for each in range(10, 40):
        cluster.seed(topic, [f"{each}" + 2000 * " "])
    options = options_of(cluster, topic, kafka_max_partition_fetch_bytes="4096")
    found = values(options, planned(cluster, topic, 0, 40))

    assert list(range(40)) == [int(each) for each in found]


def test_who_has_enough_ends_the_fetching(cluster: ThreadedBroker, topic: str) -> None:
    options = options_of(cluster, topic)
    reading = read_range(options, planned(cluster, topic, 0, 10))
    assert isinstance(reading, Iterator)
    first = next(reading)
    reading.close()  # type: ignore[attr-defined]  # a generator, as Spark sees it, too

    assert 10 == first.num_rows
    assert 10 == len(values(options, planned(cluster, topic, 0, 10)))


def test_a_task_that_is_tried_again_has_a_new_client(cluster: ThreadedBroker, topic: str) -> None:
    options = options_of(cluster, topic, kafka_client_id="again")
    wanted = planned(cluster, topic, 0, 10)
    first = list(read_range(options, wanted))

    assert first == list(read_range(options, wanted, is_retry=True))


def test_many_tasks_read_at_once(cluster: ThreadedBroker, topic: str) -> None:
    """PO3: many readers at once, in threads."""
    for each in range(10, 40):
        cluster.seed(topic, [{"value": b"%d" % each, "timestamp": 1000}])
    options = options_of(cluster, topic, kafka_max_partition_fetch_bytes="1")
    rng = Random(3)
    starts = [rng.randrange(40) for _ in range(40)]
    ranges = [(start, rng.randint(start + 1, 40)) for start in starts]
    wanted = {each: planned(cluster, topic, *each) for each in ranges}

    with ThreadPoolExecutor(20) as threads:
        found = list(threads.map(lambda each: values(options, wanted[each]), ranges))

    assert [[*map(str, range(start, until))] for start, until in ranges] == found


# Leaders and brokers.


@pytest.mark.parametrize(
    "error", ["NOT_LEADER_OR_FOLLOWER", "UNKNOWN_LEADER_EPOCH", "KAFKA_STORAGE_ERROR"]
)
def test_what_may_pass_is_asked_again(cluster: ThreadedBroker, topic: str, error: str) -> None:
    fault = cluster.faults.fail("Fetch", error, topic=topic, times=2)
    found = values(options_of(cluster, topic), planned(cluster, topic, 0, 10))

    assert 10 == len(found)
    assert fault.is_done


def test_a_connection_that_is_cut_is_made_again(cluster: ThreadedBroker, topic: str) -> None:
    cluster.faults.cut("Fetch", topic=topic)
    found = values(options_of(cluster, topic), planned(cluster, topic, 0, 10))

    assert 10 == len(found)


def test_a_refusal_is_reported_at_once(cluster: ThreadedBroker, topic: str) -> None:
    cluster.faults.fail("Fetch", "TOPIC_AUTHORIZATION_FAILED", topic=topic)

    with pytest.raises(ApiError, match="TOPIC_AUTHORIZATION_FAILED"):
        values(options_of(cluster, topic), planned(cluster, topic, 0, 10))


def test_batch_that_is_too_large_for_the_client_is_an_error_that_says_what_to_set(
    cluster: ThreadedBroker, topic: str
) -> None:
    cluster.seed(topic, [b"x" * 50_000])
    wanted = planned(cluster, topic, 10, 11)

    with pytest.raises(
        FetchTooLargeError, match=r"offset 10: .* option kafka\.receive\.message\.max\.bytes"
    ) as caught:
        values(options_of(cluster, topic, kafka_receive_message_max_bytes="10000"), wanted)
    assert (0, 10, 10_000) == (caught.value.partition, caught.value.offset, caught.value.bytes_max)


@pytest.mark.slow
def test_records_that_do_not_come_are_waited_for_no_longer_than_is_allowed(
    cluster: ThreadedBroker, topic: str
) -> None:
    wanted = planned(cluster, topic, 0, 10)
    options = options_of(cluster, topic, kafkaConsumer_pollTimeoutMs="300")
    with cluster.faults.block():
        cluster.faults.fail("Fetch", "NOT_LEADER_OR_FOLLOWER", topic=topic, times=None)
        with pytest.raises(PollTimeoutError, match=r"= 300; last error: .*NOT_LEADER"):
            values(options, wanted)


@pytest.mark.slow
def test_an_outage_lasts_no_longer_than_is_allowed() -> None:
    """Whether records were deleted meanwhile is asked for seconds, not for three API timeouts."""
    try:
        with broker(topics={"t": 1}) as cluster:
            options = options_of(
                cluster,
                "t",
                kafkaConsumer_pollTimeoutMs="300",
                kafka_default_api_timeout_ms="60000",
            )
            cluster.seed("t", ["0"])
            wanted = planned(cluster, "t", 0, 1)
            assert ["0"] == values(options, wanted)
        with pytest.raises(PollTimeoutError, match="offset 0 of t-0 could not be fetched within"):
            values(options, wanted)
    finally:
        host().close()


@pytest.mark.slow
def test_leaders_move() -> None:
    with broker(brokers=2, topics={"t": 1}, auto_create_topics_enable=False) as cluster:
        try:
            options = options_of(cluster, "t")
            for each in range(4):
                cluster.seed("t", [f"{each}"])
                cluster.move_leader("t", 0, cluster.node_ids[each % 2])

                assert each + 1 == len(values(options, planned(cluster, "t", 0, each + 1)))
        finally:
            host().close()


@pytest.mark.slow
def test_clusters_with_tls_and_passwords_are_read() -> None:
    with broker(topics=["t"], tls=True, sasl="SCRAM-SHA-256") as cluster:
        try:
            cluster.seed("t", ["secret"])
            given = {
                f"kafka.{key}": text
                for key, text in cluster.client_config("confluent-kafka").items()
            }
            options = SourceOptions.parse({"subscribe": "t", **given}, is_stream=False)

            assert ["secret"] == values(options, OffsetRange("t", 0, EARLIEST, LATEST))
            wrong = attrs.evolve(options, client=options.client | {"sasl.password": "wrong"})
            with pytest.raises(AuthenticationError):
                values(wrong, OffsetRange("t", 0, 0, 1))
        finally:
            host().close()


# Losses.


def test_records_that_were_deleted_are_lost(cluster: ThreadedBroker, topic: str) -> None:
    wanted = planned(cluster, topic, 2, 10)
    delete_records(cluster, topic, 5)

    with pytest.raises(
        UnreadRangeError, match=r"no longer has the records in \[2, 5\).*failOnDataLoss"
    ):
        values(options_of(cluster, topic), wanted)


def test_with_fail_on_data_loss_false_reading_goes_on_after_them(
    cluster: ThreadedBroker, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    wanted = planned(cluster, topic, 2, 8)
    delete_records(cluster, topic, 5)
    with caplog.at_level(logging.WARNING, "trionet.spark"):
        found = values(options_of(cluster, topic, failOnDataLoss="false"), wanted)

    assert ["5", "6", "7"] == found
    assert "COULD_NOT_READ_OFFSET_RANGE" in caplog.text


def test_nothing_outside_of_the_range_is_read_in_place_of_what_is_lost(
    cluster: ThreadedBroker, topic: str
) -> None:
    options = options_of(cluster, topic, failOnDataLoss="false")
    wanted = planned(cluster, topic, 2, 4)
    delete_records(cluster, topic, 5)

    assert [] == values(options, wanted)
    assert [] == values(options, planned(cluster, topic, 12, 15))  # a log that was cut


def test_a_range_beyond_the_end_is_lost(cluster: ThreadedBroker, topic: str) -> None:
    with pytest.raises(UnreadRangeError, match="its log starts at 0 and ends at 10"):
        values(options_of(cluster, topic), planned(cluster, topic, 12, 15))


def test_a_log_that_was_cut_is_a_loss_also_for_a_query_that_may_start_late(
    cluster: ThreadedBroker, topic: str
) -> None:
    """What it lacks is not what was before the earliest record."""
    wanted = attrs.evolve(planned(cluster, topic, 12, 15), may_start_late=True)
    with pytest.raises(UnreadRangeError, match="its log starts at 0 and ends at 10"):
        values(options_of(cluster, topic), wanted)


@pytest.mark.parametrize("loss", ["true", "false"])
@pytest.mark.parametrize("cut", [{}, {"minPartitions": "4"}], ids=["whole", "cut"])
def test_a_batch_that_starts_beyond_the_end_of_a_partition_fails(
    cluster: ThreadedBroker, topic: str, cut: dict[str, str], loss: str
) -> None:
    """RE22, RE23: its start was specified, and its end is found only when it is read."""
    start = f'{{"{topic}":{{"0":500}}}}'
    options = {"subscribe": topic, "startingOffsets": start, "failOnDataLoss": loss, **cut}

    with pytest.raises(
        OffsetsMismatchError, match=f"resolved start offset 500 .* end offset 10 of {topic}-0"
    ) as caught:
        table(cluster.bootstrap_servers, **options)
    assert "RESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET" == caught.value.condition


@pytest.mark.parametrize("cut", [{}, {"minPartitions": "4"}], ids=["whole", "cut"])
def test_a_batch_whose_end_was_deleted_before_it_was_read_fails(
    cluster: ThreadedBroker, topic: str, cut: dict[str, str]
) -> None:
    options = {"subscribe": topic, "endingOffsets": f'{{"{topic}":{{"0":6}}}}', **cut}
    assert 6 == len(table(cluster.bootstrap_servers, **options))
    delete_records(cluster, topic, 8)

    with pytest.raises(
        OffsetsMismatchError, match="start offset 8 is greater than the end offset 6"
    ):
        table(cluster.bootstrap_servers, **options)


@pytest.mark.slow
def test_a_topic_that_was_made_anew_is_noticed_by_its_id(
    cluster: ThreadedBroker, topic: str
) -> None:
    wanted = planned(cluster, topic, 0, 3)
    cluster.delete_topic(topic)
    cluster.create_topic(topic, 1)
    cluster.seed(topic, ["a", "b", "c", "d"])

    with pytest.raises(OffsetChangedError, match="was recreated"):
        values(options_of(cluster, topic), wanted)
    assert ["a", "b", "c"] == values(options_of(cluster, topic, failOnDataLoss="false"), wanted)


@pytest.mark.slow
def test_a_topic_that_is_gone_is_lost(cluster: ThreadedBroker, topic: str) -> None:
    wanted = planned(cluster, topic, 0, 3)
    cluster.delete_topic(topic)

    with pytest.raises(PartitionsDeletedError, match=f"{topic}-0 was deleted"):
        values(options_of(cluster, topic), wanted)


# Offsets.


def test_offsets_of_all_kinds(cluster: ThreadedBroker, topic: str) -> None:
    reader = reader_of(cluster, topic)
    [name] = host().call(reader.partitions)
    delete_records(cluster, topic, 2)

    assert TopicPartition(topic, 0) == name
    assert {name: 2} == host().call(reader.earliest, [name])
    assert {name: 10} == host().call(reader.latest, [name])
    assert {name: 4} == host().call(reader.for_times, {name: 1004})
    assert {name: -1} == host().call(reader.for_times, {name: 2000})
    assert {name: 2} == host().call(reader.resolved, {name: EARLIEST})
    assert {name: 10} == host().call(reader.resolved, {name: LATEST})
    assert {name: 7} == host().call(reader.resolved, {name: 7})
    assert {} == host().call(reader.earliest, [])


def test_offsets_of_a_topic_that_is_gone_are_left_out(cluster: ThreadedBroker, topic: str) -> None:
    """It may be deleted between its description and the question for its offsets."""
    reader = reader_of(cluster, topic)
    gone = [TopicPartition("gone", number) for number in range(3)]
    asked = {gone[0]: EARLIEST, gone[1]: LATEST, gone[2]: 5, TopicPartition(topic, 0): EARLIEST}

    found = host().call(reader.resolved, asked)

    assert {gone[2]: 5, TopicPartition(topic, 0): 0} == found


def test_times_without_a_match_are_what_the_strategy_says(
    cluster: ThreadedBroker, topic: str
) -> None:
    reader = reader_of(cluster, topic)
    [name] = host().call(reader.partitions)

    async def limit(time: int, strategy: NoMatch) -> dict[TopicPartition, int]:
        return await reader.limit(GlobalTimestamp(time, strategy), [name], is_start=True)

    assert {name: 3} == host().call(limit, 1003, NoMatch.ERROR)
    assert {name: LATEST} == host().call(limit, 2000, NoMatch.LATEST)
    with pytest.raises(OffsetsMismatchError, match=r"no offset .* matched the timestamp 2000"):
        host().call(limit, 2000, NoMatch.ERROR)


def test_patterns_find_new_topics_and_no_internal_ones(cluster: ThreadedBroker) -> None:
    options = SourceOptions.parse(
        {
            "kafka.bootstrap.servers": cluster.bootstrap_servers,
            "subscribePattern": "pattern|__consumer",
        },
        is_stream=True,
    )
    reader = pickle.loads(pickle.dumps(OffsetReader(options)))
    cluster.create_topic("a.pattern", 1)
    before = host().call(reader.partitions)
    cluster.create_topic("pattern.b", 2)
    after = host().call(reader.partitions)

    assert [("a.pattern", 0)] == [tuple(each) for each in before if "." in each.topic]
    assert [("a.pattern", 0), ("pattern.b", 0), ("pattern.b", 1)] == [
        tuple(each) for each in after if "." in each.topic
    ]
    assert {16} == {len(each) for each in reader.topic_ids.values()}


def test_a_pattern_has_only_what_it_matches_described(cluster: ThreadedBroker) -> None:
    for number in range(20):
        cluster.create_topic(f"others-{number}", 1)
    cluster.create_topic("some.described", 2)
    options = {"subscribePattern": r"\.described$"}
    servers = {"kafka.bootstrap.servers": cluster.bootstrap_servers}
    reader = OffsetReader(SourceOptions.parse(servers | options, is_stream=True))
    before = len(cluster.requests("DescribeTopicPartitions"))

    assert [("some.described", 0), ("some.described", 1)] == host().call(reader.partitions)

    [request] = cluster.requests("DescribeTopicPartitions")[before:]
    assert {"some.described"} == {topic for topic, _ in request.topics}


def test_a_topic_that_was_named_and_is_not_there_is_an_error(cluster: ThreadedBroker) -> None:
    reader = reader_of(cluster, "nowhere", fetchOffset_retryIntervalMs="0")

    with pytest.raises(ApiError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        host().call(reader.partitions)


def test_ends_that_seem_to_go_back_are_asked_for_again(cluster: ThreadedBroker, topic: str) -> None:
    reader = reader_of(cluster, topic, fetchOffset_retryIntervalMs="0")
    [name] = host().call(reader.partitions)
    fault = cluster.faults.fail("ListOffsets", "LEADER_NOT_AVAILABLE", topic=topic)

    assert {name: 10} == host().call(reader.latest, [name], {name: 12})
    assert fault.is_done
