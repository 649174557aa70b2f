"""The request log of a node: rows from its recorder, appended to the log's topic in batches.

One task waits until there are rows, lets more of them come for ``request.log.linger.ms``, and
appends them as a producer with acks=1 would. Rows whose partition has no leader wait in the buffer;
rows that a log refuses are dropped, and counted. What is left at the end of the broker is appended
when its last connection has closed.
"""

from __future__ import annotations

import logging
import time
from itertools import count as counting
from typing import Final

import attrs
import trio

from ...errors import ApiError, ConfigError
from ...protocol.records._records import batch_chunks
from ...protocol.request_log import SAMPLE_ALL
from ..config._broker_config import BrokerConfig
from ..log import Log
from ..log._recompression import recompress
from ..model._broker_state import BrokerState
from ..model._cluster import Cluster
from ..model._leadership import NO_LEADER
from ..model._request_log_topic import OwnTopic
from ..model._topic_registry import check_topic_name, is_internal
from ._request_recorder import RequestRecorder, halves

logger = logging.getLogger("trionet.broker")

TOPIC: Final = "request.log.topic"
SAMPLE: Final = "request.log.sample"

#: How long to wait for a partition that has a leader.
RETRY_SECONDS: Final = 0.1


@attrs.frozen
class RequestLogSettings:
    """What the settings say of the request log.

    Attributes:
        topic: its name.
        partitions: how many it gets if there is no such topic yet.
        sample_ppm: out of a million requests, how many are logged.
        rows_max: how many rows wait at most.
        linger_seconds: how long rows wait for others.
    """

    topic: str
    partitions: int
    sample_ppm: int
    rows_max: int
    linger_seconds: float


@attrs.frozen
class RequestLogStatistics:
    """What became of the requests that are over, and of the connections that closed.

    The first five together are all requests that are over, by the metric TotalTimeMs.

    Attributes:
        logged: requests whose rows are in the topic.
        dropped: requests that there was no room for, or whose rows could not be appended.
        left_out: requests that touch the log's own topic.
        sampled_out: requests that are not in the sample.
        buffered: requests whose rows wait to be appended.
        connections_logged: closed connections whose rows are in the topic.
        connections_dropped: closed connections that are lost, as ``dropped``.
    """

    logged: int = 0
    dropped: int = 0
    left_out: int = 0
    sampled_out: int = 0
    buffered: int = 0
    connections_logged: int = 0
    connections_dropped: int = 0


def request_log_settings(config: BrokerConfig) -> RequestLogSettings | None:
    """Read and check them; None if no topic is set.

    Raises:
        ConfigError: the topic cannot be one of that name, or the sample is too small to be drawn.
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
        raise ConfigError(f"{TOPIC} = {topic!r} is not allowed: it is an internal topic of Kafka's")
    return RequestLogSettings(
        topic,
        config.integer("request.log.partitions"),
        sample_ppm,
        config.integer("request.log.buffer.records"),
        config.integer("request.log.linger.ms") / 1000,
    )


def statistics(recorders: list[RequestRecorder]) -> RequestLogStatistics:
    """What became of everything that these were told."""
    return RequestLogStatistics(
        **{
            field.name: sum(getattr(recorder, field.name) for recorder in recorders)
            for field in attrs.fields(RequestLogStatistics)
        }
    )


async def open_request_log(cluster: Cluster) -> dict[int, RequestLog]:
    """Make the topic if there is none, and have every node write rows of its requests to it.

    Returns:
        The log of each node by its id; none, if no topic is set.

    Raises:
        ConfigError: the topic cannot be made.
    """
    settings = request_log_settings(cluster.config)
    if settings is None:
        await trio.lowlevel.checkpoint()
        return {}
    if cluster.topics.get(settings.topic) is None:
        try:
            await cluster.create_topic(settings.topic, partitions=settings.partitions)
        except ApiError as error:
            raise ConfigError(f"{TOPIC} = {settings.topic!r}: {error.message}") from error
    return {
        node_id: RequestLog(cluster, state, settings) for node_id, state in cluster.nodes.items()
    }


class RequestLog:
    """What writes the rows of one node.

    Args:
        cluster: whose topic it is.
        state: of the node.
        settings: of the log.

    Attributes:
        recorder: makes a row of each request of the node.
    """

    def __init__(self, cluster: Cluster, state: BrokerState, settings: RequestLogSettings) -> None:
        self._cluster = cluster
        self._state = state
        self._settings = settings
        network = cluster.network
        state.own_topic = OwnTopic(settings.topic, cluster.topics)
        self.recorder = RequestRecorder(
            state.node_id,
            settings.sample_ppm,
            settings.rows_max,
            (lambda: network.now_ms() * 1_000_000) if network.is_virtual else time.time_ns,
            network.chance,
        )
        self._turns = counting()
        self._is_failing = False

    async def run(self) -> None:
        """Append rows until cancelled."""
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
        """Append one batch, in the topic's codec, and flush it if the topic says so."""
        await trio.lowlevel.checkpoint()
        batch = self._batch(log)
        try:
            if log.config.recompresses:
                batch = await recompress(batch, log, self._cluster.now_ms())
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
        """Append what is left, when nothing comes any more."""
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
        """The partition that the next batch goes to: one after the other; None without leaders."""
        topic = self._cluster.topics.get(self._settings.topic)
        found: list[Log] = []
        for partition in range(topic.partitions if topic is not None else 0):
            log = self._state.get_log(self._settings.topic, partition)
            if log is not None and log.leader_id != NO_LEADER and not log.is_offline:
                found.append(log)
        if not found:
            self._fail(f"topic {self._settings.topic} has no partition that can be written")
            return None
        return found[next(self._turns) % len(found)]

    def _batch(self, log: Log) -> bytes:
        """As many of the oldest rows as a batch may have."""
        recorder = self.recorder
        limit = recorder.batch_bytes_max = log.config.max_message_bytes
        rows = recorder.next_batch()
        batch = b"".join(batch_chunks(rows.builder))
        while len(batch) > limit and rows.builder.count > 1:  # it was begun before the limit
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
        """Say so once, until it works again."""
        if not self._is_failing:
            logger.warning("the request log cannot be written: %s", why)
        self._is_failing = True
