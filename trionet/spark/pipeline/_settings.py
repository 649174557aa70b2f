"""The settings of a job, and the settings of each of its clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from trionet.client.config._keys import ADMIN_KEYS, CONSUMER_KEYS, PRODUCER_KEYS, ClientKeys
from trionet.errors import ConfigError

from ._fold import AGE_SECONDS_MAX
from ._objectives import Objective

#: The maximum number of records per task; more records are divided among several tasks.
RECORDS_PER_TASK_MAX: Final = 1_000_000

#: The limits of how old a record may be.
_AGES: Final = {"1h": 3600.0, "36500d": 36_500 * 86_400.0}

#: Characters that Hadoop interprets as a pattern in paths to read, but not in paths to write.
_PATTERNS: Final = frozenset("*?[]{}")

_KAFKA: Final = "kafka."
_SPARK: Final = "spark."


@attrs.frozen(kw_only=True)
class JobSettings:
    """The settings of a job.

    Attributes:
        bootstrap_servers: the initial brokers, as comma-separated ``host:port`` entries.
        topic: the topic of the request log.
        results_topic: the topic to which results are written.
        folder: the directory to which results are written as Parquet.
        checkpoint: the directory for the progress of the job.
        master: the Spark master.
        delay_seconds: how long a minute stays open for late records.
        interval_seconds: the time between micro-batches.
        max_records: the maximum number of records per micro-batch; None for no limit.
        available_now: whether to stop after reading the available records.
        allow_data_loss: whether to continue if records were deleted before they were read.
        objectives: the service level objectives.
        keep_days: how many days of results to keep before the current one; None for all.
        client: the settings of the clients, by Kafka's keys.
        spark: the configuration of Spark.
        age_max_seconds: how old a record may be when it is read.
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
    objectives: tuple[Objective, ...] = ()
    keep_days: int | None = None
    client: Mapping[str, str] = attrs.field(factory=dict)
    spark: Mapping[str, str] = attrs.field(factory=dict)
    age_max_seconds: float = AGE_SECONDS_MAX

    def __attrs_post_init__(self) -> None:
        if self.topic == self.results_topic:
            raise ConfigError(
                f"cannot write results to {self.topic}, which is the topic that the job reads; give"
                " another --results-topic"
            )
        for path in (self.folder, self.checkpoint):
            if set(path) & _PATTERNS:
                raise ConfigError(
                    f"{path}: Spark interprets {' '.join(sorted(_PATTERNS))} in a path as a"
                    " pattern; give a path without them"
                )
        least, most = _AGES.values()
        if not least <= self.age_max_seconds <= most:
            raise ConfigError(f"--max-age: must be from {' to '.join(_AGES)}")
        for key in self.client:
            if not any(keys.has(key) for keys in (CONSUMER_KEYS, PRODUCER_KEYS)):
                CONSUMER_KEYS.row(key)

    @property
    def delay_us(self) -> int:
        """The delay in microseconds."""
        return round(self.delay_seconds * 1_000_000)

    @property
    def age_max_us(self) -> int:
        """The maximum age of a record in microseconds."""
        return round(self.age_max_seconds * 1_000_000)

    def source(self) -> dict[str, str]:
        """Return the options of the source that reads the request log."""
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
        """Return the options of the sink that writes the results."""
        return {**self._of(PRODUCER_KEYS), "topic": self.results_topic}

    def admin(self) -> dict[str, str]:
        """Return the settings of the admin client."""
        return {key: text for key, text in self.client.items() if ADMIN_KEYS.has(key)}

    def _of(self, keys: ClientKeys) -> dict[str, str]:
        of_client = {k: text for k, text in self.client.items() if keys.has(k)}
        servers = {"bootstrap.servers": self.bootstrap_servers}
        return {f"{_KAFKA}{key}": text for key, text in {**of_client, **servers}.items()}


def split(given: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Split settings into client settings, stripped of their ``kafka.`` prefix, and Spark settings.

    Raises:
        ConfigError: a key starts with neither ``kafka.`` nor ``spark.``, or must be given by a
            command-line option instead.
    """
    client, spark = {}, {}
    for key, text in given.items():
        if key.startswith(_SPARK):
            spark[key] = text
        elif key == f"{_KAFKA}bootstrap.servers":
            raise ConfigError(f"{key}: use --bootstrap-server instead")
        elif key.startswith(_KAFKA):
            client[key.removeprefix(_KAFKA)] = text
        else:
            raise ConfigError(f"{key}: settings must start with {_KAFKA} or {_SPARK}")
    return client, spark
