"""Kafka's consumer metrics: fetches, partitions and the group.

(Kafka: FetchMetricsRegistry, ConsumerCoordinatorMetrics, KafkaConsumerMetrics.) Join, sync, commit
and heartbeat latencies are those of the individual requests. Kafka's latency metrics for whole
rebalances and for callbacks are not provided.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from ...metrics._registry import Family, Labels
from ...metrics._sensors import MetricGroup, gauges
from ...protocol import api_keys
from .._client_metrics import PARTITION, TOPIC, WHOLE, ApiMetrics
from .._topic_partition import TopicPartition, offset_lag
from ..network._kafka_client import KafkaClient
from .coordinator._membership import PollInterval
from .fetch._fetch_buffer import FetchCounters, TopicCounters
from .state._partition_state import PartitionState
from .state._subscription_state import SubscriptionState

_FETCHES = "consumer-fetch-manager-metrics"
_GROUP = "consumer-coordinator-metrics"


class ConsumerMetrics:
    """A collector of one consumer's metrics.

    Args:
        client: the consumer's Kafka client.
        subscriptions: holds the assigned partitions.
        counters: the counters of fetched records.
        is_read_committed: whether lag is measured up to the first open transaction.
        poll_interval: when the user last requested records; None without a group.
    """

    def __init__(
        self,
        client: KafkaClient,
        subscriptions: SubscriptionState,
        counters: FetchCounters,
        *,
        is_read_committed: bool,
        poll_interval: PollInterval | None,
    ) -> None:
        group = client.metrics.group(_FETCHES)
        self._subscriptions = subscriptions
        self._counters = counters
        self._poll_interval = poll_interval
        self._is_read_committed = is_read_committed
        of_topic = client.metrics.group(_FETCHES, *TOPIC)
        self._records = of_topic.rated("records-consumed", "Records consumed")
        self._bytes = of_topic.rated("bytes-consumed", "Bytes of fetched batches")
        self._fetches = _Fetches(group, client)
        of_partition = client.metrics.group(_FETCHES, *PARTITION)
        self._lag = of_partition.gauge("records-lag", "Offsets from the position to the end.")
        self._lead = of_partition.gauge(
            "records-lead", "Offsets from the beginning to the position."
        )
        self._lag_max = group.gauge("records-lag-max", "The largest lag of a partition.")
        self._lead_min = group.gauge("records-lead-min", "The smallest lead of a partition.")
        of_group = client.metrics.group(_GROUP)
        self._member = _member_metrics(of_group, client) if poll_interval is not None else ()
        self._assigned = of_group.gauge("assigned-partitions", "Assigned partitions.")
        self._last_poll = client.metrics.group("consumer-metrics").gauge(
            "last-poll-seconds-ago", "Seconds since records were last requested; -1 if never."
        )

    def collect(self, now: float) -> Iterator[Family]:
        """Yield the metric families at ``now`` (see :data:`trionet.metrics._registry.Collect`)."""
        topics = self._counters.topics
        whole = TopicCounters()
        for each in topics.values():
            whole.records += each.records
            whole.bytes_ += each.bytes_
        # As in Kafka, the totals and the topics share the same metric names.
        by_topic: dict[Labels, TopicCounters] = {WHOLE: whole}
        by_topic |= {(name,): each for name, each in topics.items()}
        yield from self._records.families({key: t.records for key, t in by_topic.items()}, now)
        yield from self._bytes.families({key: t.bytes_ for key, t in by_topic.items()}, now)
        yield from self._fetches.families(whole, now)
        yield from self._positions(self._subscriptions.assignment.states)
        for api in self._member:
            yield from api.families(now)
        yield gauges(self._assigned, {(): len(self._subscriptions.assignment.states)})
        if self._poll_interval is not None:
            ago = now - self._poll_interval.polled_at
            yield gauges(self._last_poll, {(): ago if math.isfinite(ago) else -1})

    def _positions(self, partitions: Mapping[TopicPartition, PartitionState]) -> Iterator[Family]:
        """Yield the lag and lead metrics of partitions."""
        lags: dict[Labels, float] = {}
        leads: dict[Labels, float] = {}
        for name, state in partitions.items():
            labels = name.topic, str(name.partition)
            position = state.position
            end = state.last_stable_offset if self._is_read_committed else state.high_watermark
            if position is None:
                continue
            lag = offset_lag(position.offset, end)
            if lag is not None:
                lags[labels] = lag
            if state.log_start_offset is not None:
                leads[labels] = max(0, position.offset - state.log_start_offset)
        yield gauges(self._lag, lags)
        yield gauges(self._lead, leads)
        yield gauges(self._lag_max, {(): max(lags.values())} if lags else {})
        yield gauges(self._lead_min, {(): min(leads.values())} if leads else {})


def _member_metrics(group: MetricGroup, client: KafkaClient) -> tuple[ApiMetrics, ...]:
    counters = client.metrics.counters
    return (
        ApiMetrics(group, counters, api_keys.JOIN_GROUP, "join", "Joins", "join-time"),
        ApiMetrics(group, counters, api_keys.SYNC_GROUP, "sync", "Syncs", "sync-time"),
        ApiMetrics(group, counters, api_keys.OFFSET_COMMIT, "commit", "Commits", "commit-latency"),
        ApiMetrics(
            group,
            counters,
            api_keys.HEARTBEAT,
            "heartbeat",
            "Heartbeats",
            "heartbeat-response-time",
            has_average=False,
        ),
    )


class _Fetches:
    """Metrics of fetch requests and responses."""

    def __init__(self, group: MetricGroup, client: KafkaClient) -> None:
        self._api = client.metrics.counters.api(api_keys.FETCH)
        self._requests = ApiMetrics(
            group, client.metrics.counters, api_keys.FETCH, "fetch", "Fetches", "fetch-latency"
        )
        self._size_avg = group.share("fetch-size-avg", "Average size of a response, in bytes.")
        self._size_max = group.largest("fetch-size-max", "Size of the largest response, in bytes.")
        self._records = group.share(
            "records-per-request-avg", "Average number of records in a response."
        )
        self._throttle_avg = group.share(
            "fetch-throttle-time-avg", "Average time that a broker throttled a request, in ms."
        )
        self._throttle_max = group.largest(
            "fetch-throttle-time-max", "Longest time that a broker throttled a request, in ms."
        )

    def families(self, whole: TopicCounters, now: float) -> Iterator[Family]:
        api = self._api
        yield from self._requests.families(now)
        for share, part in (
            (self._size_avg, api.response_bytes),
            (self._records, whole.records),
            (self._throttle_avg, api.throttle_ms),
        ):
            yield from share.families({(): (part, api.responses)}, now)
        yield from self._size_max.families({(): api.largest_response}, now)
        yield from self._throttle_max.families({(): api.longest_throttle_ms}, now)
