"""A client's view of the cluster, and the schedule of its updates.

(Kafka: Metadata.) Performs no I/O; ``now``, the time on the event loop's clock in seconds, is
always a parameter. An update is due when one has been requested (because a leader moved, a
connection was lost or a topic is new) or when the last one is older than ``metadata.max.age.ms``. A
backoff separates updates, whether they fail or succeed.

**The problem.** Every failure calls for new metadata, and often all requests of a client fail at
the same time; a metadata request per failure would burden a cluster in trouble. On the other hand,
a new topic should be usable as soon as the broker knows about it.

**The choice.** A flag records that an update is wanted: any number of calls lead to one request,
after a backoff that grows while updates fail or responses have gaps (such as a topic without a
leader). Only topics that were not requested before skip the backoff. Snapshots are immutable and
replaced as a whole, so that a snapshot in use never changes.

**What was refused.** Partial updates for new topics, as in Kafka since 2.5: they save little when a
client uses few topics, and need a second set of timers. Merging a response into the old snapshot:
deleted topics would remain.

**When to think again.** If clients use thousands of topics: every update then requests all of them
and rebuilds the snapshot.
"""

# Compiled by mypyc.

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping

import attrs

from ...errors import TrionetError
from ...protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from .._api_errors import STALE_METADATA
from .._backoff import ExponentialBackoff
from .._topic_partition import TopicPartition
from ._cluster import Cluster, Node, described, with_leaders


def _has_gaps(response: MetadataResponse) -> bool:
    return any(
        topic.error_code in STALE_METADATA
        or any(each.error_code in STALE_METADATA for each in topic.partitions)
        for topic in response.topics
    )


def _covers(known: frozenset[str] | None, wanted: frozenset[str] | None) -> bool:
    """Return whether the known topics include all wanted topics; None means all topics."""
    return known is None if wanted is None else known is not None and wanted <= known


@attrs.frozen(kw_only=True)
class MetadataTimes:
    """The age limit, backoff and timeout of metadata updates.

    Attributes:
        max_age_seconds: the age at which metadata is refreshed without being requested
            (``metadata.max.age.ms``).
        retry: the backoff between updates (``retry.backoff.ms``, ``retry.backoff.max.ms``).
        rebootstrap_seconds: how long updates may fail before the client returns to
            ``bootstrap.servers`` (``metadata.recovery.rebootstrap.trigger.ms``, KIP-1102);
            ``math.inf`` for never (``metadata.recovery.strategy=none``).
    """

    max_age_seconds: float = 300.0
    retry: ExponentialBackoff = attrs.field(default=ExponentialBackoff(0.1, 1.0))
    rebootstrap_seconds: float = 300.0


class Metadata:
    """The newest view of the cluster, and the state of its updates.

    Args:
        servers: hosts and ports of ``bootstrap.servers``.
        times: the age limit, backoff and timeout of updates.
        rng: the source of the backoff's jitter.
        allow_auto_topic_creation: whether requesting a topic's metadata may create the topic
            (``allow.auto.create.topics``).

    Attributes:
        cluster: the newest snapshot.
        topics: the topics to request; None for all. Only :meth:`set_topics` may change it.
        allow_auto_topic_creation: see the argument.
        updates: the number of successful updates.
        has_all_topics: whether the last successful update requested all topics, so that a topic
            that is not in the snapshot does not exist.
        error: why the last update failed; None if it succeeded.
        errors: the number of failed updates.
    """

    def __init__(
        self,
        servers: list[tuple[str, int]],
        times: MetadataTimes,
        rng: random.Random,
        *,
        allow_auto_topic_creation: bool = True,
    ) -> None:
        self.cluster: Cluster = Cluster.bootstrap(servers)
        self.topics: frozenset[str] | None = frozenset()
        self.allow_auto_topic_creation = allow_auto_topic_creation
        self.updates: int = 0
        self.has_all_topics = False
        self.error: TrionetError | None = None
        self.errors: int = 0
        self._servers = servers
        self._times = times
        self._rng = rng
        self._wanted = True
        self._failures = 0
        self._tried_at = self._succeeded_at = -math.inf
        self._wait_seconds = 0.0
        self._waiting_since: float | None = None
        self._asked_topics: frozenset[str] | None = frozenset()
        self._gaps = 0

    # When to update.

    def time_to_next_update(self, now: float) -> float:
        """Return the seconds until the next update is due."""
        due_at = -math.inf
        if not self._wanted:
            due_at = self._succeeded_at + self._times.max_age_seconds
        return max(0.0, max(due_at, self._tried_at + self._wait_seconds) - now)

    def request_update(self) -> int:
        """Request an update as soon as the backoff allows.

        Returns:
            The current value of :attr:`updates`, which becomes larger once the update has
            succeeded.
        """
        self._wanted = True
        return self.updates

    def set_topics(self, topics: frozenset[str] | None) -> None:
        """Set the topics to request; None for all. New topics trigger an update without backoff."""
        is_new = not _covers(self.topics, topics)
        self.topics = topics
        if is_new:
            self._wanted = True
            self._gaps = 0
            self._wait_seconds = 0.0

    def needs_rebootstrap(self, now: float) -> bool:
        """Whether updates have failed for so long that all brokers may have moved (KIP-1102)."""
        since = self._waiting_since
        return since is not None and now - since > self._times.rebootstrap_seconds

    def age(self, now: float) -> float:
        """Return the seconds since the last successful update; infinite before the first."""
        return now - self._succeeded_at

    @property
    def can_rebootstrap(self) -> bool:
        """Whether ``metadata.recovery.strategy`` is ``rebootstrap``."""
        return self._times.rebootstrap_seconds < math.inf

    # Requests and responses.

    def request(self) -> MetadataRequest:
        """Return the next Metadata request."""
        names = self.topics
        topics = None
        if names is not None:
            topics = [MetadataRequestTopic(name=name) for name in sorted(names)]
        return MetadataRequest(
            topics=topics, allow_auto_topic_creation=self.allow_auto_topic_creation
        )

    def attempt_started(self, now: float) -> None:
        """Record that an update is due and that the client is choosing a node."""
        if self._waiting_since is None:
            self._waiting_since = now

    def request_sent(self, now: float) -> None:
        """Record that a request was sent."""
        self._tried_at = now
        self._asked_topics = self.topics
        self.attempt_started(now)

    def update(self, response: MetadataResponse, now: float) -> None:
        """Apply a response; a response without brokers counts as a failure.

        Another update is requested, with a growing backoff, if the response lacks something that is
        expected soon, such as the leader of a new topic, or if topics were added after the request
        was sent (Kafka: Metadata.requestUpdate, needPartialUpdate).
        """
        if not response.brokers:
            self.failed(now)
            return
        self.cluster = described(response, self.cluster)
        self.updates += 1
        self.has_all_topics = self._asked_topics is None
        self.error = None
        self._gaps = self._gaps + 1 if _has_gaps(response) else 0
        self._wanted = self._gaps > 0 or not _covers(self._asked_topics, self.topics)
        self._failures = 0
        self._tried_at = self._succeeded_at = now
        self._waiting_since = None
        self._wait_seconds = self._times.retry.seconds(self._gaps or 1, self._rng)

    def update_leaders(
        self, leaders: Mapping[TopicPartition, tuple[int, int]], nodes: Iterable[Node]
    ) -> None:
        """Apply leaders from a Produce or Fetch response; see :func:`._cluster.with_leaders`."""
        self.cluster = with_leaders(self.cluster, leaders, nodes)

    def failed(self, now: float, error: TrionetError | None = None) -> None:
        """Record a failed update."""
        self.error = error
        self.errors += 1
        self._wanted = True
        self._failures += 1
        self._tried_at = now
        self._wait_seconds = self._times.retry.seconds(self._failures, self._rng)

    def require_rebootstrap(self) -> None:
        """Make the next update rebootstrap; a broker has responded REBOOTSTRAP_REQUIRED."""
        self._waiting_since = -math.inf

    def rebootstrap(self, now: float) -> None:
        """Return to ``bootstrap.servers`` (KIP-899), keeping the known topics."""
        known = Cluster.bootstrap(self._servers)
        self.cluster = attrs.evolve(known, id=self.cluster.id, topics=self.cluster.topics)
        self._wanted = True
        self._wait_seconds = 0.0
        self._waiting_since = now
