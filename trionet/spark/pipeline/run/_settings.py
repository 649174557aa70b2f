"""The settings of a job, and what each of its clients takes of those that begin with ``kafka.``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from trionet.client.config._keys import ADMIN_KEYS, CONSUMER_KEYS, PRODUCER_KEYS, ClientKeys
from trionet.errors import ConfigError

#: How many records a task reads at most; more are read by several tasks at once.
RECORDS_PER_TASK_MAX: Final = 1_000_000

#: What Hadoop takes for a pattern, in paths that are read and not in those that are written.
_PATTERNS: Final = frozenset("*?[]{}")

_KAFKA: Final = "kafka."
_SPARK: Final = "spark."


@attrs.frozen(kw_only=True)
class JobSettings:
    """What a job is to do.

    Attributes:
        bootstrap_servers: brokers to begin with, as ``host:port`` with commas.
        topic: the request log.
        results_topic: where results go.
        folder: where results go, too.
        checkpoint: where the job keeps how far it is.
        master: the Spark that does the work.
        delay_seconds: how long a minute waits for what is late.
        interval_seconds: how often to look for new records.
        max_records: how many to read at once at most; None for all there are.
        available_now: read what is there, and end.
        allow_data_loss: go on where records were deleted before they were read.
        client: settings of the clients by Kafka's keys.
        spark: settings of Spark.
    """

    bootstrap_servers: str
    topic: str
    results_topic: str
    folder: str
    checkpoint: str
    master: str
    delay_seconds: float
    interval_seconds: float
    max_records: int | None
    available_now: bool
    allow_data_loss: bool
    client: Mapping[str, str] = attrs.field(factory=dict)
    spark: Mapping[str, str] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        if self.topic == self.results_topic:
            raise ConfigError(
                f"results cannot go to {self.topic}, which is read; name another --results-topic"
            )
        for path in (self.folder, self.checkpoint):
            if set(path) & _PATTERNS:
                raise ConfigError(
                    f"{path}: Spark takes {' '.join(sorted(_PATTERNS))} in a path that it reads for"
                    " patterns; name a folder without them"
                )
        for key in self.client:
            if not any(keys.has(key) for keys in (CONSUMER_KEYS, PRODUCER_KEYS)):
                CONSUMER_KEYS.row(key)

    @property
    def delay_us(self) -> int:
        """The delay in microseconds."""
        return round(self.delay_seconds * 1_000_000)

    def source(self) -> dict[str, str]:
        """Options of the source."""
        options = {
            **self._of(CONSUMER_KEYS),
            "subscribe": self.topic,
            "startingOffsets": "earliest",
            "maxRecordsPerPartition": str(RECORDS_PER_TASK_MAX),
            "failOnDataLoss": str(not self.allow_data_loss).lower(),
        }
        if self.max_records is not None:
            options["maxOffsetsPerTrigger"] = str(self.max_records)
        return options

    def sink(self) -> dict[str, str]:
        """Options of the sink."""
        return {**self._of(PRODUCER_KEYS), "topic": self.results_topic}

    def admin(self) -> dict[str, str]:
        """Settings of the client that looks after topics."""
        return {key: text for key, text in self.client.items() if ADMIN_KEYS.has(key)}

    def _of(self, keys: ClientKeys) -> dict[str, str]:
        of_client = {k: text for k, text in self.client.items() if keys.has(k)}
        servers = {"bootstrap.servers": self.bootstrap_servers}
        return {f"{_KAFKA}{key}": text for key, text in {**of_client, **servers}.items()}


def split(given: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Settings of the clients, without ``kafka.``, and those of Spark.

    Raises:
        ConfigError: a key begins with neither, or has an option of its own.
    """
    client, spark = {}, {}
    for key, text in given.items():
        if key.startswith(_SPARK):
            spark[key] = text
        elif key == f"{_KAFKA}bootstrap.servers":
            raise ConfigError(f"{key} is --bootstrap-server")
        elif key.startswith(_KAFKA):
            client[key.removeprefix(_KAFKA)] = text
        else:
            raise ConfigError(f"{key}: a setting begins with {_KAFKA} or with {_SPARK}")
    return client, spark
