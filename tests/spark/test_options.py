"""The options of a source and a sink: the names, defaults, refusals of Spark's own connector.

The page about options has all that there are, and what it says of their defaults is so.
"""

from __future__ import annotations

import logging
import pickle
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from spark.agreement import SUITES
from trionet.client._topic_partition import TopicPartition
from trionet.errors import ConfigError
from trionet.spark._client_options import warn_once
from trionet.spark._offset_limits import (
    EARLIEST,
    Earliest,
    GlobalTimestamp,
    Latest,
    NoMatch,
    OffsetLimit,
    OffsetsMismatchError,
    SpecificOffsets,
    SpecificTimestamps,
)
from trionet.spark._options import (
    Assign,
    SinkOptions,
    SourceOptions,
    Subscribe,
    SubscribePattern,
    Subscription,
)

SERVERS = {"kafka.bootstrap.servers": "host:9092"}
EXACTLY_ONCE = SERVERS | {"delivery.guarantee": "exactly-once"}


@pytest.fixture(autouse=True)
def warn_again() -> None:
    """What another test has been warned of is told again."""
    warn_once.cache_clear()


NEEDED = {**SERVERS, "subscribe": "t"}
T0 = TopicPartition("t", 0)


def stream(**options: str) -> SourceOptions:
    return SourceOptions.parse(NEEDED | options, is_stream=True)


def batch(**options: str) -> SourceOptions:
    return SourceOptions.parse(NEEDED | options, is_stream=False)


def test_what_is_not_given_is_as_in_the_connector() -> None:
    expected = SourceOptions(
        client={"bootstrap.servers": "host:9092"},
        subscription=Subscribe(("t",)),
        starting=Latest(),
        ending=Latest(),
        fail_on_data_loss=True,
        min_partitions=None,
        max_records_per_partition=None,
        max_offsets_per_trigger=None,
        min_offsets_per_trigger=None,
        max_trigger_delay_seconds=900.0,
        poll_timeout_seconds=120.0,
        fetch_retries=3,
        fetch_retry_seconds=1.0,
        group_label="spark-kafka-source",
        include_headers=False,
    )

    actual = stream()

    assert expected == actual
    assert "host:9092" == actual.client["bootstrap.servers"]
    assert Earliest() == batch().starting
    assert "spark-kafka-relation" == batch().group_label


@pytest.mark.parametrize("change_case", [str.upper, str.lower, str.title])
@pytest.mark.parametrize(
    ("option", "attribute", "value"),
    [
        ("kafkaConsumer.pollTimeoutMs", "poll_timeout_seconds", 1.111),
        ("maxOffsetsPerTrigger", "max_offsets_per_trigger", 1111),
        ("minOffsetsPerTrigger", "min_offsets_per_trigger", 1111),
        ("maxTriggerDelay", "max_trigger_delay_seconds", 1.111),
        ("fetchOffset.numRetries", "fetch_retries", 1111),
        ("fetchOffset.retryIntervalMs", "fetch_retry_seconds", 1.111),
        ("minPartitions", "min_partitions", 1111),
        ("maxRecordsPerPartition", "max_records_per_partition", 1111),
    ],
)
def test_names_have_any_case(
    option: str, attribute: str, value: float, change_case: type[str]
) -> None:
    """OP10: Spark hands them over in lower case, and users write them as they like."""
    actual = stream(**{change_case(option): "1111"})

    assert value == pytest.approx(getattr(actual, attribute))


@pytest.mark.parametrize(
    ("option", "text", "attribute", "value"),
    [
        ("failOnDataLoss", "False", "fail_on_data_loss", False),
        ("includeHeaders", "TRUE", "include_headers", True),
        ("maxTriggerDelay", "5s", "max_trigger_delay_seconds", 5.0),
        ("maxTriggerDelay", "2 h".replace(" ", ""), "max_trigger_delay_seconds", 7200.0),
        ("maxTriggerDelay", "3Min", "max_trigger_delay_seconds", 180.0),
        ("maxTriggerDelay", "500us", "max_trigger_delay_seconds", 0.0005),
        ("minOffsetsPerTrigger", "0", "min_offsets_per_trigger", 0),
        ("maxOffsetsPerTrigger", "9223372036854775807", "max_offsets_per_trigger", 2**63 - 1),
        ("groupIdPrefix", " mine ", "group_label", "mine"),
    ],
)
def test_values_are_read(option: str, text: str, attribute: str, value: object) -> None:
    assert value == getattr(stream(**{option: text}), attribute)


@pytest.mark.parametrize(
    ("option", "texts"),
    [
        ("minPartitions", ["a", "1.0", "0", "-1", "2147483648"]),
        ("maxRecordsPerPartition", ["a", "0", "-1"]),
        ("maxOffsetsPerTrigger", ["many", "-5", "9223372036854775808", ""]),
        ("minOffsetsPerTrigger", ["-1"]),
        ("maxTriggerDelay", ["soon", "-5s", "5 s", "1.5s", "5 parsecs", "s", ""]),
        ("kafkaConsumer.pollTimeoutMs", ["-1", "1s"]),
        ("fetchOffset.numRetries", ["-1", "0"]),
        ("fetchOffset.retryIntervalMs", ["-1"]),
        ("failOnDataLoss", ["no", "1", ""]),
        ("includeHeaders", ["yes"]),
        ("startingTimestamp", ["now", "-1", "1.5"]),
        ("startingOffsetsByTimestampStrategy", ["earliest"]),
    ],
)
def test_values_that_are_not_allowed_are_refused(option: str, texts: list[str]) -> None:
    """OP12: with what is."""
    for text in texts:
        with pytest.raises(ConfigError, match=rf"{option} = .*(allowed: |expected )"):
            stream(**{option: text})


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"assign": '{"b":[1],"a":[0]}'}, Assign((TopicPartition("b", 1), TopicPartition("a", 0)))),
        ({"subscribe": " a, b ,,a"}, Subscribe(("a", "b"))),
        ({"subscribePattern": " logs-.* "}, SubscribePattern("logs-.*")),
    ],
)
def test_one_of_three_says_what_is_read(options: dict[str, str], expected: Subscription) -> None:
    actual = SourceOptions.parse(SERVERS | options, is_stream=True)

    assert expected == actual.subscription


@pytest.mark.parametrize("is_stream", [True, False])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({**SERVERS, "subscirbe": "t"}, "subscirbe: unknown option; did you mean subscribe?"),
        ({**NEEDED, "startingOffset": "nonsense"}, "did you mean startingOffsets?"),
        ({**SERVERS, "topic": "t"}, "given: none; topic is an option of a sink"),
        ({"subscribe": "t", "kafka.bootstrap.server": "h:1"}, "bootstrap.server' is misspelt"),
        ({"subscribe": "t", "bootstrap.servers": "h:1"}, "did you mean kafka.bootstrap.servers?"),
    ],
)
def test_a_misspelt_option_is_named_rather_than_the_one_that_is_missing(
    options: dict[str, str], message: str, is_stream: bool
) -> None:
    assert message in refusal(options, is_stream=is_stream)


@pytest.mark.parametrize("is_stream", [True, False])
@pytest.mark.parametrize(
    ("options", "messages"),
    [
        ({}, ["options must be specified", "subscribe", "subscribePattern"]),
        ({"subscribe": "t", "subscribePattern": "t.*"}, ["only one", "options can be specified"]),
        ({"subscribe": "t", "assign": '{"a":[0]}'}, ["only one", "options can be specified"]),
        ({"assign": ""}, ["no topicpartitions to assign"]),
        ({"assign": "{}"}, ["no topicpartitions to assign"]),
        ({"subscribe": ""}, ["no topics to subscribe"]),
        ({"subscribe": " , "}, ["no topics to subscribe"]),
        ({"subscribePattern": ""}, ["pattern to subscribe is empty"]),
        ({"subscribe": "t"}, ["option 'kafka.bootstrap.servers' must be specified"]),
        ({"subscribe": "t", "kafka.bootstrap.servers": " "}, ["must be specified"]),
    ],
)
def test_what_is_read_must_be_clear(
    options: dict[str, str], messages: list[str], is_stream: bool
) -> None:
    """OP2, OP3, OP4: before anything is asked of a cluster."""
    if not options:
        messages = ["options must", "be specified", *messages[1:]]
    text = refusal(options, is_stream=is_stream)

    normal = text.lower()
    assert [] == [each for each in messages if each.lower() not in normal]


def refusal(options: dict[str, str], *, is_stream: bool) -> str:
    with pytest.raises(ConfigError) as caught:
        SourceOptions.parse(options, is_stream=is_stream)
    return str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"endingOffsets": "latest"}, "ending offset not valid in streaming queries"),
        (
            {"endingOffsetsByTimestamp": '{"t":{"0":1000}}'},
            "ending timestamp not valid in streaming",
        ),
    ],
)
def test_a_stream_has_no_end(options: dict[str, str], message: str) -> None:
    """OP1: in neither of the two ways that the connector refuses."""
    assert message in refusal(NEEDED | options, is_stream=True)


def test_an_ending_timestamp_of_a_stream_is_ignored_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As the connector ignores it, but not silently."""
    assert stream() == stream(endingTimestamp="1000")
    assert ["endingTimestamp option ignored in streaming queries"] == caplog.messages


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"startingOffsets": "latest"},
            "starting offset can't be latest for batch queries on Kafka",
        ),
        (
            {"subscribe": "t", "startingOffsets": '{"t":{"0":-1}}'},
            "starting offset for t-0 can't be latest for batch queries on Kafka",
        ),
        (
            {"subscribe": "t", "startingOffsets": '{"t":"latest"}'},
            "starting offset for t can't be latest for batch queries on Kafka",
        ),
        (
            {"endingOffsets": "earliest"},
            "ending offset can't be earliest for batch queries on Kafka",
        ),
        (
            {"subscribe": "t", "endingOffsets": '{"t":{"0":-2}}'},
            "ending offset for t-0 can't be earliest for batch queries on Kafka",
        ),
        (
            {"subscribe": "t", "endingOffsets": '{"t":"earliest"}'},
            "ending offset for t can't be earliest for batch queries on Kafka",
        ),
    ],
)
def test_a_batch_neither_begins_at_its_end_nor_ends_at_its_begin(
    options: dict[str, str], message: str
) -> None:
    """OP8, OP9: whole, in a topic, in a partition."""
    assert message in refusal(options, is_stream=False)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, Latest()),
        ({"startingOffsets": "earLiEst"}, Earliest()),
        ({"startingOffsets": " laTest "}, Latest()),
        ({"startingOffsets": '{"t":{"0":23}}'}, SpecificOffsets({T0: 23})),
        ({"startingOffsets": '{"t":"earliest"}'}, SpecificOffsets({}, {"t": EARLIEST})),
        ({"startingOffsetsByTimestamp": '{"t":{"0":23}}'}, SpecificTimestamps({T0: 23})),
        ({"startingTimestamp": " 23 "}, GlobalTimestamp(23)),
        (
            {"startingTimestamp": "23", "startingOffsetsByTimestampStrategy": "Latest"},
            GlobalTimestamp(23, NoMatch.LATEST),
        ),
        (
            {"startingOffsetsByTimestamp": '{"t":{"0":23}}', "startingOffsets": "earliest"},
            SpecificTimestamps({T0: 23}),
        ),
        (
            {
                "startingTimestamp": "42",
                "startingOffsetsByTimestamp": '{"t":{"0":23}}',
                "startingOffsets": "earliest",
            },
            GlobalTimestamp(42),
        ),
    ],
)
def test_a_query_begins_where_the_most_preferred_option_says(
    options: dict[str, str], expected: OffsetLimit
) -> None:
    """OP7, OP17: one time for all, then times, then offsets; words in any case."""
    assert expected == stream(**options).starting


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, Latest()),
        ({"endingOffsets": "laTest"}, Latest()),
        ({"endingOffsets": '{"t":{"0":-1}}'}, SpecificOffsets({T0: -1})),
        ({"endingOffsetsByTimestamp": '{"t":{"0":9}}'}, SpecificTimestamps({T0: 9})),
        ({"endingTimestamp": "9", "endingOffsets": "latest"}, GlobalTimestamp(9)),
        (
            {"endingTimestamp": "9", "endingOffsetsByTimestamp": '{"t":{"0":8}}'},
            GlobalTimestamp(9),
        ),
    ],
)
def test_a_batch_ends_where_the_most_preferred_option_says(
    options: dict[str, str], expected: OffsetLimit
) -> None:
    """OP7, OP17: as it begins."""
    assert expected == batch(**options).ending


@pytest.mark.parametrize(
    "option", ["startingOffsets", "startingOffsetsByTimestamp", "endingOffsets"]
)
def test_wrong_json_is_reported_with_its_option(option: str) -> None:
    assert f"{option}: expected e.g. " in refusal(NEEDED | {option: '{"t":7}'}, is_stream=False)


@pytest.mark.parametrize(
    ("start", "end", "condition"),
    [
        (
            '{"t":{"0":1,"1":1}}',
            '{"t":{"0":2}}',
            "MISMATCHED_TOPIC_PARTITIONS_BETWEEN_START_OFFSET",
        ),
        ('{"t":{"0":5}}', '{"t":{"0":4}}', "UNRESOLVED_START_{}_GREATER_THAN_END_{}"),
    ],
)
@pytest.mark.parametrize(("suffix", "what"), [("", "OFFSET"), ("ByTimestamp", "TIMESTAMP")])
def test_both_ends_of_a_batch_fit_each_other(
    start: str, end: str, condition: str, suffix: str, what: str
) -> None:
    """RE20, RE21: offsets and times alike, at the load and not in the middle of a job."""
    with pytest.raises(OffsetsMismatchError) as caught:
        batch(**{f"startingOffsets{suffix}": start, f"endingOffsets{suffix}": end})

    assert caught.value.condition.startswith(condition.format(what, what))


def test_ends_that_are_not_known_yet_are_compared_later() -> None:
    start = '{"t":{"0":5}}'

    assert (
        SpecificOffsets({}, {"t": -1})
        == batch(startingOffsets=start, endingOffsets='{"t":"latest"}').ending
    )
    assert (
        SpecificOffsets({T0: -1})
        == batch(startingOffsets=start, endingOffsets='{"t":{"0":-1}}').ending
    )
    assert GlobalTimestamp(3) == batch(startingOffsets=start, endingTimestamp="3").ending


def test_the_least_of_a_micro_batch_is_not_above_the_most() -> None:
    """OP5: no batch could have both."""
    options = {"minOffsetsPerTrigger": "20", "maxOffsetsPerTrigger": "15"}

    text = refusal(NEEDED | options, is_stream=True)

    assert "minOffsetsPerTrigger(20) is higher than the maxOffsetsPerTrigger(15)" in text


def test_a_batch_ignores_what_is_for_streams_and_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    options = {"maxOffsetsPerTrigger": "5", "minOffsetsPerTrigger": "1", "maxTriggerDelay": "1s"}
    with caplog.at_level(logging.WARNING, "trionet.spark"):
        actual = batch(**options)

    assert actual.max_offsets_per_trigger is None
    assert actual.min_offsets_per_trigger is None
    assert [f"{name} option ignored in batch queries" for name in options] == caplog.messages


def test_a_group_is_only_a_name_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    """OP14, OP15: both options are taken; the group wins, as it does in the connector."""
    with caplog.at_level(logging.WARNING, "trionet.spark"):
        actual = stream(**{"kafka.group.id": "mine", "groupIdPrefix": "prefix"})

    assert "mine" == actual.group_label
    assert "group.id" not in actual.client
    assert ["kafka.group.id", "groupIdPrefix"] == [text.split()[0] for text in caplog.messages]


def test_a_trial_reports_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """Spark does not say at a load whether it is of a batch or of a stream."""
    options = NEEDED | {
        "maxOffsetsPerTrigger": "5",
        "kafka.group.id": "mine",
        "kafka.session.timeout.ms": "1000",
    }
    with caplog.at_level(logging.INFO, "trionet"):
        actual = SourceOptions.parse(options, is_stream=False, quietly=True)
        assert [] == caplog.messages
        told = SourceOptions.parse(options, is_stream=False)

    assert told == actual
    assert 3 == len(caplog.messages)


def test_options_travel_to_the_workers() -> None:
    options = stream(startingOffsets='{"t":{"0":5}}', **{"kafka.sasl.password": "secret"})

    assert options == pickle.loads(pickle.dumps(options))


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("maxOffsetPerTrigger", "unknown option; did you mean maxOffsetsPerTrigger?"),
        (
            "startingOffset",
            "did you mean startingOffsets? Options of a source: assign, ending",
        ),
        ("bootstrap.servers", "unknown option; did you mean kafka.bootstrap.servers?"),
        ("security.protocol", "unknown option; did you mean kafka.security.protocol?"),
        ("sasl.some.setting", "unknown option; did you mean kafka.sasl.some.setting?"),
        ("max.poll.records", "unknown option; did you mean kafka.max.poll.records?"),
    ],
)
def test_a_misspelt_option_is_an_error(option: str, message: str) -> None:
    """One that is silently ignored would be found out in production."""
    assert message in refusal(NEEDED | {option: "1"}, is_stream=True)


#: They resemble partitions, startingOffsets or includeHeaders a little.
OF_OTHER_SOURCES = (
    "groupId",
    "header",
    "maxFilesPerTrigger",
    "offset",
    "partition",
    "startingVersion",
    "timestampFormat",
    "triggerInterval",
)


@pytest.mark.parametrize(
    ("option", "why"),
    [
        ("topic", "option topic is ignored by a source: it is an option of a sink"),
        ("zzz", "option zzz is ignored by a source: it is unknown"),
        *(
            (name, f"option {name.lower()} is ignored by a source: it is unknown")
            for name in OF_OTHER_SOURCES
        ),
        ("kafka.acks", "option kafka.acks is ignored by a source: it is a setting of producers"),
        (
            "kafka.zzz.url",
            "option kafka.zzz.url is ignored by a source: Kafka's clients have no such setting",
        ),
    ],
)
@pytest.mark.parametrize("quietly", [False, True])
def test_what_the_connector_ignores_is_a_warning(
    option: str, why: str, quietly: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """A job that runs with the connector runs here."""
    options = NEEDED | {option: "1"}

    assert stream() == SourceOptions.parse(options, is_stream=True, quietly=quietly)
    assert [why] * (not quietly) == caplog.messages


TABLE = {
    "option.kafka.bootstrap.servers": "host:9092",
    "option.subscribe": "t",
    "option.startingOffsets": "earliest",
    "kafka.bootstrap.servers": "host:9092",
    "subscribe": "t",
    "startingoffsets": "earliest",
    "owner": "me",
    "provider": "trionet",
    "subscribed": "a property that someone has given the table",
    "transient_lastddltime": "1",
}


def test_properties_of_a_table_of_the_catalog_are_no_options(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Neither errors nor warnings."""
    assert batch(startingOffsets="earliest") == SourceOptions.parse(TABLE, is_stream=False)
    assert [] == caplog.messages


def test_a_misspelt_option_of_a_table_is_an_error() -> None:
    assert "did you mean subscribe?" in refusal(TABLE | {"option.subscrbe": "t"}, is_stream=False)


@pytest.mark.parametrize("option", ["path", "checkpointLocation", "queryName"])
def test_what_spark_adds_itself_is_no_error(option: str) -> None:
    assert stream() == stream(**{option: "anything"})


def test_a_name_is_given_once_whatever_its_case() -> None:
    assert stream() == stream(SUBSCRIBE="t")
    assert "option SUBSCRIBE is set twice" in refusal(NEEDED | {"SUBSCRIBE": "u"}, is_stream=True)


EXISTING = [
    TopicPartition(topic, number)
    for topic, count in [("first", 3), ("second", 2), ("other", 2)]
    for number in range(count)
]


@pytest.mark.parametrize(
    ("subscription", "expected"),
    [
        (Assign((TopicPartition("first", 2), TopicPartition("first", 0))), ["first-0", "first-2"]),
        (Assign((TopicPartition("first", 3), TopicPartition("gone", 0))), []),
        (Subscribe(("second", "first")), ["first-0", "first-1", "first-2", "second-0", "second-1"]),
        (Subscribe(("gone",)), []),
        (SubscribePattern("f.*"), ["first-0", "first-1", "first-2"]),
        (SubscribePattern("o"), ["other-0", "other-1", "second-0", "second-1"]),
        (SubscribePattern("^o"), ["other-0", "other-1"]),
    ],
)
def test_a_query_reads_what_it_names_of_what_there_is(
    subscription: Subscription, expected: list[str]
) -> None:
    """CS1, CS2, CS3, CS4: what does not exist is left out; a pattern is found anywhere."""
    assert expected == [str(each) for each in subscription.select(reversed(EXISTING))]


@pytest.mark.parametrize(
    ("subscription", "topics"),
    [
        (
            Assign((TopicPartition("b", 2), TopicPartition("a", 0), TopicPartition("b", 0))),
            ("a", "b"),
        ),
        (Subscribe(("b", "a")), ("b", "a")),
    ],
)
def test_the_cluster_is_asked_for_no_more_topics_than_needed(
    subscription: Assign | Subscribe, topics: tuple[str, ...]
) -> None:
    assert topics == subscription.topics
    assert subscription == pickle.loads(pickle.dumps(subscription))


def test_a_pattern_chooses_among_the_topics_of_the_cluster() -> None:
    subscription = SubscribePattern("o.*e")

    assert ("other", "orders") == subscription.topics_among(["first", "other", "second", "orders"])
    assert subscription == pickle.loads(pickle.dumps(subscription))


@pytest.mark.parametrize(
    ("options", "topic"),
    [({}, None), ({"topic": " t "}, "t"), ({"TOPIC": "t"}, "t")],
)
def test_a_topic_may_be_given_for_all_rows(options: dict[str, str], topic: str | None) -> None:
    actual = SinkOptions.parse(SERVERS | options)

    assert SinkOptions(client={"bootstrap.servers": "host:9092"}, topic=topic) == actual
    assert "host:9092" == actual.client["bootstrap.servers"]
    assert actual == pickle.loads(pickle.dumps(actual))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "option 'kafka.bootstrap.servers' must be specified for a sink"),
        (SERVERS | {"topic": " "}, "topic = '' is not allowed"),
        (SERVERS | {"topics": "t"}, "topics: unknown option; did you mean topic?"),
        (SERVERS | {"exactlyOnce": "true"}, "set delivery.guarantee=exactly-once"),
        (
            SERVERS | {"kafka.delivery.guarantee": "exactly-once"},
            "kafka.delivery.guarantee: unknown option; set delivery.guarantee=exactly-once",
        ),
        (EXACTLY_ONCE | {"kafka.enable_idempotence": "false"}, "which needs true"),
        (SERVERS | {"kafka.transactional_id": "team"}, "kafka.transactional.id"),
        (
            SERVERS | {"kafka.max_block_ms": "1000", "kafka.max.block.ms": "2000"},
            "option kafka.max.block.ms is given twice, with dots and with underscores",
        ),
        (
            SERVERS | {"delivery.guarantee": "once"},
            "delivery.guarantee = 'once' is not allowed; allowed: at-least-once, exactly-once",
        ),
        (EXACTLY_ONCE | {"kafka.acks": "1"}, "kafka.acks = 1 is not allowed with delivery"),
        (EXACTLY_ONCE | {"kafka.enable.idempotence": "false"}, "which needs true"),
        (EXACTLY_ONCE | {"kafka.retries": "0"}, "which needs 1 or more"),
        (
            EXACTLY_ONCE | {"kafka.max.in.flight.requests.per.connection": "6"},
            "max.in.flight.requests.per.connection",
        ),
        (EXACTLY_ONCE | {"kafka.transactional.id": ""}, "give the prefix of transactional ids"),
        (SERVERS | {"kafka.transactional.id": "x"}, "only with delivery.guarantee=exactly-once"),
        (SERVERS | {"includeHeaders": "maybe"}, "includeHeaders = 'maybe' is not allowed"),
    ],
)
def test_a_mistake_is_reported_before_anything_is_written(
    options: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        SinkOptions.parse(options)

    assert message in str(caught.value)


def test_what_the_connector_ignores_in_a_sink_is_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Headers are written without includeHeaders, which the connector accepts, too."""
    given = {"subscribe": "t", "kafka.group.id": "g", "includeHeaders": "true", "zzz": "1"}

    assert SinkOptions.parse(SERVERS) == SinkOptions.parse(SERVERS | given)
    assert [
        "option subscribe is ignored by a sink: it is an option of a source",
        "option zzz is ignored by a sink: it is unknown",
        "option kafka.group.id is ignored by a sink: it is a setting of consumers",
    ] == caplog.messages
    SinkOptions.parse(SERVERS | given)
    assert 3 == len(caplog.messages)  # not for each micro-batch


def test_where_a_stream_keeps_its_checkpoint_is_for_spark() -> None:
    options = SERVERS | {"checkpointLocation": "/tmp/c", "queryName": "q", "path": "t"}

    assert SinkOptions.parse(SERVERS) == SinkOptions.parse(options)


PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "spark-options.md"
NEEDED_ON_PAGE = {"kafka.bootstrap.servers": "host:9092"}
SUBSCRIBED = NEEDED_ON_PAGE | {"subscribe": "t"}
ROW = re.compile(
    r"^\| (?P<first>[^|]+?) \| (?P<second>[^|]+?) \| (?P<third>[^|]+?) \|$", re.MULTILINE
)


def rows(title: str) -> dict[str, str]:
    """The options below a heading, and what stands for their defaults."""
    section = PAGE.read_text("utf-8").split(f"\n## {title}\n")[1].split("\n## ")[0]
    return {name.strip("`"): default for name, default, _ in ROW.findall(section) if name[0] == "`"}


def of_source(options: dict[str, str]) -> object:
    return SourceOptions.parse({"subscribe": "t", **options}, is_stream=True)


def names_of(parse: Callable[[dict[str, str]], object]) -> set[str]:
    """The options that there are, as the error about one that is unknown lists them."""
    with pytest.raises(ConfigError) as caught:
        parse(NEEDED_ON_PAGE | {"subscribes": "", "topics": ""})
    listed = re.search(r"Options of a \w+: (.+), and kafka\.", str(caught.value))
    assert listed is not None
    return set(listed[1].split(", "))


@pytest.mark.parametrize(("title", "parse"), [("Source", of_source), ("Sink", SinkOptions.parse)])
def test_the_page_has_every_option(title: str, parse: Callable[[dict[str, str]], object]) -> None:
    assert names_of(parse) | {"kafka.bootstrap.servers"} == set(rows(title))


def test_a_default_is_what_the_page_says() -> None:
    defaults = {
        name: default.strip("`")
        for name, default in rows("Source").items()
        if re.fullmatch(r"`[\w.-]+`", default)
    }
    # A stream has no end to be given; what a trigger has, only a stream uses.
    ending = {"endingOffsets": defaults.pop("endingOffsets")}

    for is_stream, given in [(True, defaults), (False, defaults | ending)]:
        without = SourceOptions.parse(SUBSCRIBED, is_stream=is_stream)
        assert without == SourceOptions.parse(SUBSCRIBED | given, is_stream=is_stream)
    assert len(defaults) >= 7


def test_the_page_has_what_does_not_hold_and_why() -> None:
    section = PAGE.read_text("utf-8").split("\n## Differences from the connector\n")[1]
    found = [row for row in ROW.findall(section) if re.fullmatch("[A-Z]{2}[0-9]+", row[0])]

    assert [line for lines in SUITES.values() for line in lines if line.reason] == found


def test_exactly_once_is_chosen_by_an_option() -> None:
    assert not SinkOptions.parse(SERVERS).is_exactly_once
    assert not SinkOptions.parse(SERVERS | {"delivery.guarantee": "at-least-once"}).is_exactly_once

    options = SinkOptions.parse(EXACTLY_ONCE)
    assert options.is_exactly_once
    assert "trionet" == options.transactional_id_prefix
    assert "900000" == options.client["transaction.timeout.ms"]


@pytest.mark.parametrize("separator", [".", "_"])
def test_what_names_transactions_may_be_set(separator: str) -> None:
    """As every key of Kafka, also with underscores."""
    keys = {"transactional.id": "team", "transaction.timeout.ms": "1"}
    given = {f"kafka.{key.replace('.', separator)}": text for key, text in keys.items()}
    options = SinkOptions.parse(EXACTLY_ONCE | given)
    assert "team" == options.transactional_id_prefix
    assert "1" == options.client["transaction.timeout.ms"]
    assert "transactional.id" not in options.client
