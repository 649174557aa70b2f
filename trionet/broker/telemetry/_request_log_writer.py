"""The writer of a node's request log, which appends batches of rows to the request log's topic.

The problem: each completed request and closed connection becomes a record of an ordinary topic.
This must not slow down requests, and rows must not be lost silently.

The choice: the processors only fill the bounded buffer of a :class:`.RequestRecorder`. One task
waits for rows, waits another ``request.log.linger.ms`` for more rows, and appends them directly to
the log, as a producer with acks=1 would. While no partition has a leader, rows stay in the buffer.
Rows that a log rejects are dropped and counted. When the broker stops, the remaining rows are
appended after the last connection has closed.

Rejected:

* A producer that connects to the broker. Its requests would also be logged, and would compete with
  clients for handlers and connections.
* Waiting for space when the buffer is full, since a slow disk would then block the network.

Reconsider if rows must survive a failing disk. Until they are appended, they exist only in
memory.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from itertools import count as counting
from typing import Final

import attrs
import trio

from ..._util._logging import get_logger
from ...errors import ApiError, ConfigError
from ...net._network import SYSTEM
from ...protocol.records._records import batch_chunks
from ...protocol.request_log import SAMPLE_ALL
from ..config._broker_config import BrokerConfig
from ..log import Log
from ..log.validation._recompression import recompress
from ..model._broker_state import BrokerState
from ..model._cluster import Cluster
from ..model._leadership import NO_LEADER
from ..model._request_log_topic import RequestLogTopic
from ..model._topic_registry import check_topic_name, is_internal
from ._request_recorder import RequestRecorder, halves

logger = get_logger("trionet.broker")

TOPIC: Final = "request.log.topic"
SAMPLE: Final = "request.log.sample"

#: The back-off while no partition of the topic has a leader.
RETRY_SECONDS: Final = 0.1


@attrs.frozen
class RequestLogSettings:
    """The settings of the request log.

    Attributes:
        topic: the name of the topic.
        partitions: the topic's number of partitions, if the broker has to create it.
        sample_ppm: the number of logged requests per million requests.
        rows_max: the maximum number of buffered rows.
        linger_seconds: how long the writer waits for further rows before it appends a batch.
        is_exclusive: whether clients can neither write to the topic nor delete from it.
    """

    topic: str
    partitions: int
    sample_ppm: int
    rows_max: int
    linger_seconds: float
    is_exclusive: bool


@attrs.frozen
class RequestLogStatistics:
    """The numbers of completed requests and closed connections, by outcome in the request log.

    The first five numbers add up to the count of the metric TotalTimeMs.

    Attributes:
        logged: requests whose rows are in the topic.
        dropped: requests without a row, because the buffer was full or the append failed.
        left_out: requests that concern the request log's own topic.
        sampled_out: requests that are not in the sample.
        buffered: requests whose rows have not been appended yet.
        connections_logged: closed connections whose rows are in the topic.
        connections_dropped: closed connections without a row, for the same reasons as requests.
    """

    logged: int = 0
    dropped: int = 0
    left_out: int = 0
    sampled_out: int = 0
    buffered: int = 0
    connections_logged: int = 0
    connections_dropped: int = 0


def request_log_settings(config: BrokerConfig) -> RequestLogSettings | None:
    """Validate the settings of the request log and return them, or None if no topic is set.

    Raises:
        ConfigError: the topic name is not allowed, or the sample rate is too small.
    """
    topic = config[TOPIC]
    sample = config[SAMPLE]
    assert isinstance(sample, float)
    sample_ppm = round(sample * SAMPLE_ALL)
    if sample and not sample_ppm:
        raise ConfigError(
            f"{SAMPLE} = {sample} is not allowed; allowed: 0, or a number from {1 / SAMPLE_ALL:f}"
            " to 1"
        )
    if not isinstance(topic, str) or not topic:
        return None
    try:
        check_topic_name(topic)
    except ApiError as error:
        raise ConfigError(f"{TOPIC} = {topic!r} is not allowed: {error.message}") from None
    if is_internal(topic):
        raise ConfigError(f"{TOPIC} = {topic!r} is not allowed: it is an internal topic of Kafka")
    return RequestLogSettings(
        topic,
        config.integer("request.log.partitions"),
        sample_ppm,
        config.integer("request.log.buffer.records"),
        config.integer("request.log.linger.ms") / 1000,
        config.flag("request.log.exclusive"),
    )


def statistics(recorders: list[RequestRecorder]) -> RequestLogStatistics:
    """Return the total statistics of several recorders."""
    return RequestLogStatistics(
        **{
            field.name: sum(getattr(recorder, field.name) for recorder in recorders)
            for field in attrs.fields(RequestLogStatistics)
        }
    )


async def open_request_log(
    cluster: Cluster, states: Iterable[BrokerState]
) -> dict[int, RequestLog]:
    """Create the topic if needed, and create a request log for each node.

    Returns:
        The request logs by node id; an empty dict if no topic is set.

    Raises:
        ConfigError: the topic cannot be created.
    """
    settings = request_log_settings(cluster.config)
    if settings is None:
        await trio.lowlevel.checkpoint()
        return {}
    if cluster.topics.get(settings.topic) is None:
        # Its records have no keys, which a log.cleanup.policy with "compact" would reject.
        is_compacted = cluster.log_config({}).is_compacted
        configs = (("cleanup.policy", "delete"),) if is_compacted else ()
        try:
            await cluster.create_topic(
                settings.topic, partitions=settings.partitions, configs=configs
            )
        except ApiError as error:
            raise ConfigError(f"{TOPIC} = {settings.topic!r}: {error.message}") from error
    return {state.node_id: RequestLog(cluster, state, settings) for state in states}


class RequestLog:
    """The request log of a node.

    Args:
        cluster: the cluster that the node belongs to.
        state: the state of the node.
        settings: the settings of the request log.

    Attributes:
        recorder: records the rows of the node's requests and connections.
    """

    def __init__(self, cluster: Cluster, state: BrokerState, settings: RequestLogSettings) -> None:
        self._cluster = cluster
        self._state = state
        self._settings = settings
        network = cluster.network
        state.request_log_topic = RequestLogTopic(settings.topic, cluster.topics)
        state.exclusive_topic = settings.topic if settings.is_exclusive else None
        self.recorder = RequestRecorder(
            state.node_id,
            settings.sample_ppm,
            settings.rows_max,
            time.time_ns if network is SYSTEM else (lambda: network.now_ms() * 1_000_000),
            network.rng,
        )
        self._turns = counting()
        self._is_failing = False

    async def run(self) -> None:
        """Append buffered rows to the topic until cancelled."""
        recorder = self.recorder
        while True:
            await recorder.has_rows.wait()
            await trio.sleep(self._settings.linger_seconds)
            while recorder.rows:
                log = self._next_log()
                if log is None:
                    await trio.sleep(RETRY_SECONDS)
                else:
                    await self._append_some(log)

    async def _append_some(self, log: Log) -> None:
        """Append one batch with the topic's compression type, and flush the log if required."""
        await trio.lowlevel.checkpoint()
        batch = self._batch(log)
        try:
            if log.config.recompresses:
                batch = await recompress(batch, log.config, log.directory, self._cluster.now_ms())
        except ApiError as error:
            self._lose(error)
            return
        self._append(log, batch)
        if log.must_flush:
            try:
                await log.flush(log.end_offset)
            except ApiError as error:
                self._fail(error.message)

    def close(self) -> None:
        """Append the remaining rows; must be called after the last connection has closed."""
        recorder = self.recorder
        recorder.release_throttled()
        while recorder.rows:
            log = self._next_log()
            if log is None:
                recorder.next_batch()
                recorder.written(is_logged=False)
            else:
                self._append(log, self._batch(log))

    def _next_log(self) -> Log | None:
        """Return the next batch's log, chosen round-robin; None if no partition is writable."""
        topic = self._cluster.topics.get(self._settings.topic)
        found: list[Log] = []
        for partition in range(topic.partitions if topic is not None else 0):
            log = self._state.get_log(self._settings.topic, partition)
            if log is not None and log.leader_id != NO_LEADER and not log.is_offline:
                found.append(log)
        if not found:
            self._fail(f"topic {self._settings.topic} has no writable partition")
            return None
        return found[next(self._turns) % len(found)]

    def _batch(self, log: Log) -> bytes:
        """Encode the oldest rows as one batch of at most max.message.bytes, or of a single row."""
        recorder = self.recorder
        limit = recorder.batch_bytes_max = log.config.max_message_bytes
        rows = recorder.next_batch()
        batch = b"".join(batch_chunks(rows.builder))
        # Only needed if the limit was lowered after the batch was begun.
        while len(batch) > limit and rows.builder.count > 1:
            recorder.divided(halves(batch))
            rows = recorder.next_batch()
            batch = b"".join(batch_chunks(rows.builder))
        return batch

    def _append(self, log: Log, batch: bytes) -> None:
        try:
            appended = log.append(batch, self._cluster.now_ms())
        except ApiError as error:
            self._lose(error)
            return
        self.recorder.written(is_logged=True)
        self._state.appended(log, appended.size)
        self._is_failing = False

    def _lose(self, error: ApiError) -> None:
        self.recorder.written(is_logged=False)
        self._fail(error.message)

    def _fail(self, why: str) -> None:
        """Log a failure, unless one has been logged since the last successful append."""
        if not self._is_failing:
            logger.warning("cannot write the request log: %s", why)
        self._is_failing = True
