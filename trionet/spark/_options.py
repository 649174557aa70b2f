"""The options of the source and the sink, with the checks and defaults of Spark's connector.

The subscription is the connector's ConsumerStrategy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias, TypeVar

import attrs

from .._util._logging import get_logger
from ..client._topic_partition import TopicPartition
from ..client.config._keys import CONSUMER_KEYS, PRODUCER_KEYS
from ..errors import ConfigError
from ..protocol._config_types import FROM_0, FROM_1, INT
from ._client_options import (
    TRANSACTIONAL_ID,
    OptionTexts,
    check_transactional,
    is_applied,
    sink_client,
    source_client,
    without_secrets,
)
from ._offset_limits import (
    EARLIEST,
    LATEST,
    Earliest,
    GlobalTimestamp,
    Latest,
    NoMatch,
    OffsetLimit,
    SpecificOffsets,
    SpecificTimestamps,
    parse_offsets,
    parse_timestamps,
    partitions_from_json,
)
from ._planning import check_order, check_same_partitions
from ._topic_pattern import check, is_found


@attrs.frozen
class Assign:
    """An explicit list of partitions; partitions that do not exist are ignored.

    Attributes:
        partitions: the partitions, in the order given.
    """

    partitions: tuple[TopicPartition, ...]

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics to describe."""
        return tuple(sorted({each.topic for each in self.partitions}))

    def select(self, existing: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Return the existing partitions that the query reads, sorted.

        Args:
            existing: the partitions of non-internal topics.
        """
        subscribed = set(self.partitions)
        return sorted(each for each in existing if each in subscribed)


@attrs.frozen
class Subscribe:
    """All partitions of the named topics.

    Attributes:
        names: the names of the topics.
    """

    names: tuple[str, ...]

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics to describe."""
        return self.names

    def select(self, existing: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Return the existing partitions that the query reads, sorted.

        Args:
            existing: the partitions of non-internal topics.
        """
        subscribed = set(self.names)
        return sorted(each for each in existing if each.topic in subscribed)


@attrs.frozen
class SubscribePattern:
    """All partitions of the topics whose names contain a match for the pattern.

    Attributes:
        pattern: a regular expression in Java's syntax; see :mod:`._topic_pattern`.
    """

    pattern: str

    def topics_among(self, existing: Iterable[str]) -> tuple[str, ...]:
        """Return the topics to describe.

        Args:
            existing: the names of all non-internal topics.
        """
        return tuple(topic for topic in existing if is_found(self.pattern, topic))

    def select(self, existing: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Return the existing partitions that the query reads, sorted.

        Args:
            existing: the partitions of non-internal topics.
        """
        return sorted(each for each in existing if is_found(self.pattern, each.topic))


Subscription: TypeAlias = Assign | Subscribe | SubscribePattern


_STRATEGY: Final = "startingOffsetsByTimestampStrategy"
STARTING_OPTIONS: Final = (
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "startingOffsets",
    _STRATEGY,
)
_ENDING_TIMESTAMP: Final = "endingTimestamp"
ENDING_OPTIONS: Final = (_ENDING_TIMESTAMP, "endingOffsetsByTimestamp", "endingOffsets")

_Read = TypeVar("_Read")


def read_limits(texts: OptionTexts, *, is_stream: bool) -> tuple[OffsetLimit, OffsetLimit]:
    """Return the start and the end of a query.

    Args:
        texts: all options of the source.
        is_stream: whether this is a streaming query, which starts at latest by default and has no
            end.

    Raises:
        ConfigError: a value is not allowed, or an option does not apply to this kind of query.
    """
    if is_stream:
        for name in ENDING_OPTIONS:
            # The connector ignores endingTimestamp in a stream, and so do we; see _log_ignored.
            if name in texts and name != _ENDING_TIMESTAMP:
                what = "offset" if name == "endingOffsets" else "timestamp"
                raise ConfigError(
                    f"{name}: ending {what} not valid in streaming queries, which have no end;"
                    " remove the option, or use a batch query"
                )
        return _limit(texts, "starting", Latest()), Latest()
    starting, ending = _limit(texts, "starting", Earliest()), _limit(texts, "ending", Latest())
    _check_start(starting)
    _check_end(ending)
    return starting, ending


def check_limits(starting: OffsetLimit, ending: OffsetLimit) -> None:
    """Check that an explicit start and end are consistent.

    Raises:
        OffsetsMismatchError: the partitions differ, or a partition ends before it starts.
    """
    match starting, ending:
        case SpecificOffsets(), SpecificOffsets():
            if starting.topics or ending.topics:
                return  # compared later, when the partitions of the topics are known
            what, start, end = "offset", starting.offsets, ending.offsets
        case SpecificTimestamps(), SpecificTimestamps():
            what, start, end = "timestamp", starting.timestamps, ending.timestamps
        case _:
            return
    check_same_partitions(start, end)
    for partition, offset in sorted(start.items()):
        check_order(partition, offset, end[partition], what=what)


def _limit(texts: OptionTexts, side: str, default: OffsetLimit) -> OffsetLimit:
    """Return one limit: the global timestamp, else per-partition timestamps, else offsets."""
    strategy = _strategy(texts)
    time = texts.integer(f"{side}Timestamp", FROM_0)
    if time is not None:
        return GlobalTimestamp(time, strategy)
    name = f"{side}OffsetsByTimestamp"
    if (text := texts.text(name)) is not None:
        return _parsed(name, lambda value: parse_timestamps(value, strategy), text)
    name = f"{side}Offsets"
    if (text := texts.text(name)) is None:
        return default
    if text.lower() == "earliest":
        return Earliest()
    return Latest() if text.lower() == "latest" else _parsed(name, parse_offsets, text)


def _strategy(texts: OptionTexts) -> NoMatch:
    text = (texts.text(_STRATEGY) or NoMatch.ERROR.value).lower()
    for each in NoMatch:
        if text == each.value:
            return each
    raise ConfigError(f"{_STRATEGY} = {text!r} is not allowed; allowed: error, latest")


def _parsed(name: str, parse: Callable[[str], _Read], text: str) -> _Read:
    try:
        return parse(text)
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from None


def _check_start(limit: OffsetLimit) -> None:
    why = "can't be latest for batch queries on Kafka: there would be nothing to read"
    if isinstance(limit, Latest):
        raise ConfigError(f"starting offset {why}; set startingOffsets to earliest or to offsets")
    if isinstance(limit, SpecificOffsets) and (name := _with(limit, LATEST)):
        raise ConfigError(f"starting offset for {name} {why}; give an offset, or -2 for earliest")


def _check_end(limit: OffsetLimit) -> None:
    why = "can't be earliest for batch queries on Kafka: there would be nothing to read"
    if isinstance(limit, Earliest):
        raise ConfigError(f"ending offset {why}; set endingOffsets to latest or to offsets")
    if isinstance(limit, SpecificOffsets) and (name := _with(limit, EARLIEST)):
        raise ConfigError(f"ending offset for {name} {why}; give an offset, or -1 for latest")


def _with(limit: SpecificOffsets, end: int) -> str | None:
    """Return the first partition or topic whose offset is ``end``, or None."""
    named = [str(each) for each, offset in sorted(limit.offsets.items()) if offset == end]
    named += sorted(topic for topic, offset in limit.topics.items() if offset == end)
    return named[0] if named else None


logger = get_logger("trionet.spark")

_SUBSCRIPTIONS: Final = ("assign", "subscribe", "subscribePattern")
_STREAM_ONLY: Final = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")
_OF_SOURCE: Final = (
    *_SUBSCRIPTIONS,
    *STARTING_OPTIONS,
    *ENDING_OPTIONS,
    "failOnDataLoss",
    "minPartitions",
    "maxRecordsPerPartition",
    *_STREAM_ONLY,
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "groupIdPrefix",
    "includeHeaders",
)
_GUARANTEE: Final = "delivery.guarantee"
# The connector accepts includeHeaders for a sink, too, which writes headers without it.
_OF_SINK: Final = ("topic", _GUARANTEE, "includeHeaders")
_SOURCE_ONLY: Final = MappingProxyType(dict.fromkeys(_OF_SOURCE, "a source"))
_SINK_ONLY: Final = MappingProxyType(dict.fromkeys(("topic", _GUARANTEE), "a sink"))

_AT_LEAST_ONCE: Final = "at-least-once"
_EXACTLY_ONCE: Final = "exactly-once"
_GUARANTEES: Final = (_AT_LEAST_ONCE, _EXACTLY_ONCE)
_TRANSACTIONAL_ID_PREFIX: Final = "trionet"
#: The brokers' default of transaction.max.timeout.ms: a task's transaction stays open until the
#: whole micro-batch has been written.
_TRANSACTION_TIMEOUT_MS: Final = 900_000

#: The default of spark.network.timeout.
POLL_TIMEOUT_SECONDS: Final = 120.0
FETCH_RETRIES: Final = 3
FETCH_RETRY_SECONDS: Final = 1.0
MAX_TRIGGER_DELAY_SECONDS: Final = 900.0
STREAM_GROUP_ID_PREFIX: Final = "spark-kafka-source"
BATCH_GROUP_ID_PREFIX: Final = "spark-kafka-relation"


@attrs.frozen(kw_only=True)
class SourceOptions:
    """The validated options of a source; can be pickled.

    Attributes:
        client: the ``kafka.*`` options without the prefix, including ``bootstrap.servers``.
        subscription: the partitions to read.
        starting: the start of the query.
        ending: the end of a batch query; always latest for a stream, which has no end.
        fail_on_data_loss: whether data loss fails the query or is merely logged.
        min_partitions: the approximate minimum number of tasks; None for one per partition.
        max_records_per_partition: the maximum number of offsets per task; None for no limit.
        max_offsets_per_trigger: the maximum number of offsets per micro-batch; None for no limit.
        min_offsets_per_trigger: the number of offsets that a micro-batch waits for, or None.
        max_trigger_delay_seconds: the maximum time that a micro-batch waits for offsets.
        poll_timeout_seconds: how long a task waits for records that are known to exist.
        fetch_retries: how often the driver tries to query offsets before giving up.
        fetch_retry_seconds: the delay between attempts.
        group_label: the consumer group id that the connector would use. This source has no group,
            so the label only serves as the ``client.id``, which identifies the client in logs.
        include_headers: whether to add the ``headers`` column.
    """

    client: dict[str, str] = attrs.field(repr=without_secrets)
    subscription: Subscription
    starting: OffsetLimit
    ending: OffsetLimit = attrs.field(factory=Latest)
    fail_on_data_loss: bool = True
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    max_offsets_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay_seconds: float = MAX_TRIGGER_DELAY_SECONDS
    poll_timeout_seconds: float = POLL_TIMEOUT_SECONDS
    fetch_retries: int = FETCH_RETRIES
    fetch_retry_seconds: float = FETCH_RETRY_SECONDS
    group_label: str = STREAM_GROUP_ID_PREFIX
    include_headers: bool = False

    @classmethod
    def parse(
        cls, options: Mapping[str, str], *, is_stream: bool, quietly: bool = False
    ) -> SourceOptions:
        """Parse and check the options of a source.

        Args:
            options: the options from Spark; their names are case-insensitive.
            is_stream: whether the source is used by ``readStream`` rather than ``read``.
            quietly: whether to omit log messages about options that have no effect; for callers
                that only check whether the options are valid.

        Raises:
            ConfigError: an option is missing, unknown, not allowed, or conflicts with another.
        """
        texts = OptionTexts(options)
        # First: what a misspelt option would have set is missing to the other checks.
        texts.check_names("a source", _OF_SOURCE, _SINK_ONLY, quietly=quietly)
        starting, ending = read_limits(texts, is_stream=is_stream)
        subscription = _subscription(texts)
        client_options = texts.of_kafka()
        group_id = client_options.pop("group.id", None)
        client = source_client(client_options, quietly=quietly)
        check_limits(starting, ending)
        retries = texts.integer("fetchOffset.numRetries", FROM_1, INT)
        min_offsets, max_offsets = _offsets_per_trigger(texts)
        if not quietly:
            _log_ignored(texts, group_id, is_stream=is_stream)
        return cls(
            client=client,
            subscription=subscription,
            starting=starting,
            ending=ending,
            fail_on_data_loss=texts.flag("failOnDataLoss", True),
            min_partitions=texts.integer("minPartitions", FROM_1, INT),
            max_records_per_partition=texts.integer("maxRecordsPerPartition", FROM_1),
            max_offsets_per_trigger=max_offsets if is_stream else None,
            min_offsets_per_trigger=min_offsets if is_stream else None,
            max_trigger_delay_seconds=texts.seconds("maxTriggerDelay", MAX_TRIGGER_DELAY_SECONDS),
            poll_timeout_seconds=_milliseconds(
                texts, "kafkaConsumer.pollTimeoutMs", POLL_TIMEOUT_SECONDS
            ),
            fetch_retries=FETCH_RETRIES if retries is None else retries,
            fetch_retry_seconds=_milliseconds(
                texts, "fetchOffset.retryIntervalMs", FETCH_RETRY_SECONDS
            ),
            group_label=_group_label(texts, group_id, is_stream=is_stream),
            include_headers=texts.flag("includeHeaders", False),
        )


@attrs.frozen(kw_only=True)
class SinkOptions:
    """The validated options of a sink; can be pickled.

    Attributes:
        client: the ``kafka.*`` options without the prefix, including ``bootstrap.servers``.
        topic: the topic for all rows; None to use the ``topic`` column of each row.
        is_exactly_once: whether a stream writes in transactions, each row exactly once.
        transactional_id_prefix: the first part of the names of transactional ids and groups.
    """

    client: dict[str, str] = attrs.field(repr=without_secrets)
    topic: str | None = None
    is_exactly_once: bool = False
    transactional_id_prefix: str = _TRANSACTIONAL_ID_PREFIX

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> SinkOptions:
        """Parse and check the options of a sink.

        Args:
            options: the options from Spark; their names are case-insensitive.

        Raises:
            ConfigError: an option is missing, unknown or not allowed.
        """
        texts = OptionTexts(options)
        for wrong in ("exactlyOnce", f"kafka.{_GUARANTEE}"):
            if wrong in texts:
                raise ConfigError(
                    f"{wrong}: unknown option; set {_GUARANTEE}=exactly-once to write each row of a"
                    " stream exactly once, or remove the option to write it at least once"
                )
        texts.check_names("a sink", _OF_SINK, _SOURCE_ONLY)
        texts.flag("includeHeaders", False)
        topic = texts.text("topic")
        if topic == "":
            raise ConfigError(
                "topic = '' is not allowed; give the name of a topic, or remove the option"
            )
        is_exactly_once = _is_exactly_once(texts)
        given = texts.of_kafka()
        prefix = given.pop(TRANSACTIONAL_ID, None) if is_exactly_once else None
        client = sink_client(given)
        if is_exactly_once:
            check_transactional(client)
            client.setdefault("transaction.timeout.ms", str(_TRANSACTION_TIMEOUT_MS))
        return cls(
            client=client,
            topic=topic,
            is_exactly_once=is_exactly_once,
            transactional_id_prefix=_TRANSACTIONAL_ID_PREFIX if prefix is None else _prefix(prefix),
        )


def table_options(texts: OptionTexts) -> dict[str, str]:
    """Return the options of a table of Spark's catalog that have an effect on its queries.

    A table with the option ``topic`` is written to; another is read. Of the other options, which
    may contain secrets that this package does not know, a warning remains.

    Args:
        texts: the options of the table; without ``topic``, they are valid for a source.

    Raises:
        ConfigError: the table would be both read and written to, or its options are not valid for
            a sink.
    """
    names: tuple[str, ...]
    if "topic" not in texts:
        texts.check_names("a source", _OF_SOURCE, _SINK_ONLY)
        of_client = texts.of_kafka()
        of_client.pop("group.id", None)
        source_client(of_client)
        names, keys = _OF_SOURCE, CONSUMER_KEYS
    elif given := [name for name in _SUBSCRIPTIONS if name in texts]:
        raise ConfigError(
            f"topic, {given[0]}: a table is either read or written to, since Spark does not say"
            " which table rows are inserted into, only which one they come from; create one table"
            f" with {given[0]}, and another with topic"
        )
    else:
        SinkOptions.parse(texts.all())
        names, keys = _OF_SINK, PRODUCER_KEYS
    known = {name.lower() for name in names}
    return {
        name: text for name, text in texts.all().items() if name in known or is_applied(keys, name)
    }


def _is_exactly_once(texts: OptionTexts) -> bool:
    guarantee = (texts.text(_GUARANTEE) or _AT_LEAST_ONCE).lower()
    if guarantee not in _GUARANTEES:
        raise ConfigError(
            f"{_GUARANTEE} = {guarantee!r} is not allowed; allowed: {', '.join(_GUARANTEES)}"
        )
    return guarantee == _EXACTLY_ONCE


def _prefix(text: str) -> str:
    if not text.strip():
        raise ConfigError(
            f"option kafka.{TRANSACTIONAL_ID} = {text!r} is not allowed; give the prefix of"
            f" transactional ids and groups, or remove it for {_TRANSACTIONAL_ID_PREFIX!r}"
        )
    return text.strip()


def _subscription(texts: OptionTexts) -> Subscription:
    given = [name for name in _SUBSCRIPTIONS if name in texts]
    if len(given) != 1:
        which = "only one of the following options can" if given else "one of these options must"
        hint = "; topic is an option of a sink" if "topic" in texts and not given else ""
        raise ConfigError(
            f"{which} be specified for a source: {', '.join(_SUBSCRIPTIONS)}; given:"
            f" {', '.join(given) or 'none'}{hint}"
        )
    [name] = given
    text = texts.text(name) or ""
    if name == "subscribePattern":
        if not text:
            raise ConfigError("subscribePattern = '': pattern to subscribe is empty")
        return SubscribePattern(check(text))
    if name == "subscribe":
        topics = dict.fromkeys(topic for each in text.split(",") if (topic := each.strip()))
        if not topics:
            raise ConfigError(
                f"subscribe = {text!r}: no topics to subscribe to; give comma-separated names"
            )
        return Subscribe(tuple(topics))
    partitions = partitions_from_json(text) if text.startswith("{") else ()
    if not partitions:
        raise ConfigError(
            f"assign = {text!r}: no topicpartitions to assign; give them as"
            ' {"topicA":[0,1],"topicB":[2,4]}'
        )
    return Assign(partitions)


def _group_label(texts: OptionTexts, group_id: str | None, *, is_stream: bool) -> str:
    if group_id is not None:
        return group_id.strip()
    prefix = texts.text("groupIdPrefix")
    return prefix or (STREAM_GROUP_ID_PREFIX if is_stream else BATCH_GROUP_ID_PREFIX)


def _log_ignored(texts: OptionTexts, group_id: str | None, *, is_stream: bool) -> None:
    """Log options that have no effect, or not the effect that users might expect."""
    if group_id is not None:
        logger.warning(
            "kafka.group.id = %r only identifies the client in logs: partitions are read without a"
            " consumer group, and offsets are kept in Spark's checkpoint",
            group_id,
        )
        if "groupIdPrefix" in texts:
            logger.warning("groupIdPrefix is ignored, because kafka.group.id is set")
    kind = "streaming" if is_stream else "batch"
    for name in (_ENDING_TIMESTAMP,) if is_stream else _STREAM_ONLY:
        if name in texts:
            logger.warning("%s option ignored in %s queries", name, kind)


def _offsets_per_trigger(texts: OptionTexts) -> tuple[int | None, int | None]:
    min_offsets = texts.integer("minOffsetsPerTrigger", FROM_0)
    max_offsets = texts.integer("maxOffsetsPerTrigger", FROM_0)  # 0 reads nothing
    if min_offsets is not None and max_offsets is not None and min_offsets > max_offsets:
        raise ConfigError(
            f"the value of minOffsetsPerTrigger({min_offsets}) is higher than the"
            f" maxOffsetsPerTrigger({max_offsets}): no micro-batch can satisfy both"
        )
    return min_offsets, max_offsets


def _milliseconds(texts: OptionTexts, name: str, default_seconds: float) -> float:
    number = texts.integer(name, FROM_0)
    return default_seconds if number is None else number / 1000
