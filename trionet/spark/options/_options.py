"""The options of a source and of a sink: names, defaults and rules of Spark's connector."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import attrs

from ...errors import ConfigError
from ...protocol._config_types import FROM_0, FROM_1, INT
from ..offsets._offset_limits import Latest, OffsetLimit
from ..offsets._partition_offsets import partitions_from_json
from ._client_options import BOOTSTRAP_SERVERS, sink_client, source_client, without_secrets
from ._limit_options import ENDING_OPTIONS, STARTING_OPTIONS, check_limits, read_limits
from ._option_values import OptionTexts
from ._subscription import Assign, Subscribe, Subscription, parse_pattern

logger = logging.getLogger("trionet.spark")

_STRATEGIES: Final = ("assign", "subscribe", "subscribePattern")
_OF_STREAMS: Final = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")
_OF_SOURCE: Final = (
    *_STRATEGIES,
    *STARTING_OPTIONS,
    *ENDING_OPTIONS,
    "failOnDataLoss",
    "minPartitions",
    "maxRecordsPerPartition",
    *_OF_STREAMS,
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "groupIdPrefix",
    "includeHeaders",
)
_OF_SINK: Final = ("topic",)
_SOURCES_ALONE: Final = MappingProxyType(dict.fromkeys(_OF_SOURCE, "a source"))
_SINKS_ALONE: Final = MappingProxyType(dict.fromkeys(_OF_SINK, "a sink"))

#: spark.network.timeout.
POLL_TIMEOUT_SECONDS: Final = 120.0
FETCH_RETRIES: Final = 3
FETCH_RETRY_SECONDS: Final = 1.0
MAX_TRIGGER_DELAY_SECONDS: Final = 900.0
STREAM_GROUP_ID_PREFIX: Final = "spark-kafka-source"
BATCH_GROUP_ID_PREFIX: Final = "spark-kafka-relation"


@attrs.frozen(kw_only=True)
class SourceOptions:
    """All options of a source, checked; can be pickled.

    Attributes:
        client: the options ``kafka.*`` without that, ``bootstrap.servers`` among them.
        subscription: which partitions are read.
        starting: where it begins.
        ending: where a batch ends; a stream has none and says latest.
        fail_on_data_loss: whether records that are gone fail the query, or are logged.
        min_partitions: at least about so many tasks; None: one for each partition.
        max_records_per_partition: the most offsets in one task; None: any number.
        max_offsets_per_trigger: the most offsets in one micro-batch; None: any number.
        min_offsets_per_trigger: a micro-batch waits for so many; None: it does not wait.
        max_trigger_delay_seconds: but no longer than this.
        poll_timeout_seconds: how long a task waits for records that it knows are there.
        fetch_retries: how often the driver asks for offsets before it gives up.
        fetch_retry_seconds: how long it waits before it asks again.
        group_label: what the connector would call its consumer group; there is none here, so it
            is only for names in logs, such as ``client.id``.
        include_headers: whether there is a column of headers.
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

    @property
    def bootstrap_servers(self) -> str:
        """Where the cluster is, as ``host:port,host:port``."""
        return self.client[BOOTSTRAP_SERVERS]

    @classmethod
    def parse(
        cls, options: Mapping[str, str], *, is_stream: bool, quietly: bool = False
    ) -> SourceOptions:
        """Read and check what a user gave.

        Args:
            options: as Spark hands them over; names in any case.
            is_stream: ``readStream``, not ``read``.
            quietly: do not tell in the log what has no effect, for whoever only tries whether
                they could be these of a batch or of a stream.

        Raises:
            ConfigError: something is missing, unknown, not allowed, or does not fit the rest; says
                what to do.
        """
        texts = OptionTexts(options)
        starting, ending = read_limits(texts, is_stream=is_stream)
        subscription = _subscription(texts)
        texts.check_names("a source", _OF_SOURCE, _SINKS_ALONE)
        given = texts.of_kafka()
        group_id = given.pop("group.id", None)
        client = source_client(given, quietly=quietly)
        check_limits(starting, ending)
        retries = texts.integer("fetchOffset.numRetries", FROM_1, INT)
        least, most = _offsets_per_trigger(texts)
        if not quietly:
            _tell(texts, group_id, is_stream=is_stream)
        return cls(
            client=client,
            subscription=subscription,
            starting=starting,
            ending=ending,
            fail_on_data_loss=texts.flag("failOnDataLoss", True),
            min_partitions=texts.integer("minPartitions", FROM_1, INT),
            max_records_per_partition=texts.integer("maxRecordsPerPartition", FROM_1),
            max_offsets_per_trigger=most if is_stream else None,
            min_offsets_per_trigger=least if is_stream else None,
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
    """All options of a sink, checked; can be pickled.

    Attributes:
        client: the options ``kafka.*`` without that, ``bootstrap.servers`` among them.
        topic: where all rows go; None: the column ``topic`` says it.
    """

    client: dict[str, str] = attrs.field(repr=without_secrets)
    topic: str | None = None

    @property
    def bootstrap_servers(self) -> str:
        """Where the cluster is, as ``host:port,host:port``."""
        return self.client[BOOTSTRAP_SERVERS]

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> SinkOptions:
        """Read and check what a user gave.

        Args:
            options: as Spark hands them over; names in any case.

        Raises:
            ConfigError: something is missing, unknown or not allowed; says what to do.
        """
        texts = OptionTexts(options)
        if "exactlyOnce" in texts:
            raise ConfigError(
                "exactlyOnce is not supported: a sink writes each row at least once, and twice only"
                " when Spark runs a task or a micro-batch again; leave it out"
            )
        texts.check_names("a sink", _OF_SINK, _SOURCES_ALONE)
        topic = texts.text("topic")
        if topic == "":
            raise ConfigError("topic = '' is not allowed; allowed: a topic's name, or no option")
        return cls(client=sink_client(texts.of_kafka()), topic=topic)


def _subscription(texts: OptionTexts) -> Subscription:
    given = [name for name in _STRATEGIES if name in texts]
    if len(given) != 1:
        which = "only one of the following options can" if given else "one of these options must"
        raise ConfigError(
            f"{which} be specified for a source: {', '.join(_STRATEGIES)}; given:"
            f" {', '.join(given) or 'none'}"
        )
    [name] = given
    text = texts.text(name) or ""
    if name == "subscribePattern":
        if not text:
            raise ConfigError("subscribePattern = '': pattern to subscribe is empty; give one")
        return parse_pattern(text)
    if name == "subscribe":
        topics = dict.fromkeys(topic for each in text.split(",") if (topic := each.strip()))
        if not topics:
            raise ConfigError(
                f"subscribe = {text!r}: no topics to subscribe to; give names, separated by commas"
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


def _tell(texts: OptionTexts, group_id: str | None, *, is_stream: bool) -> None:
    """What has another effect than somebody may think."""
    if group_id is not None:
        logger.warning(
            "kafka.group.id = %r only names the client in logs: partitions are read without a"
            " group, and Spark keeps the offsets",
            group_id,
        )
        if "groupIdPrefix" in texts:
            logger.warning("groupIdPrefix is ignored, because kafka.group.id is set")
    for name in () if is_stream else _OF_STREAMS:
        if name in texts:
            logger.warning("%s option ignored in batch queries", name)


def _offsets_per_trigger(texts: OptionTexts) -> tuple[int | None, int | None]:
    least = texts.integer("minOffsetsPerTrigger", FROM_0)
    most = texts.integer("maxOffsetsPerTrigger", FROM_1)
    if least is not None and most is not None and least > most:
        raise ConfigError(
            f"the value of minOffsetsPerTrigger({least}) is higher than the"
            f" maxOffsetsPerTrigger({most}): no micro-batch could ever have both"
        )
    return least, most


def _milliseconds(texts: OptionTexts, name: str, default_seconds: float) -> float:
    number = texts.integer(name, FROM_0)
    return default_seconds if number is None else number / 1000
