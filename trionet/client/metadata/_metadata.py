"""When a client has to ask for the cluster's metadata again, and what it knows meanwhile.

(Kafka: Metadata.) Pure: ``now`` is a parameter, in seconds of the loop's clock. An update is due
when somebody wants one (a leader has moved, a connection was lost, a topic is new), or when the
last is old; after one that failed, or came just before, there is a wait.
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
from .._node import Node
from .._topic_partition import TopicPartition
from ._cluster import Cluster, described, with_leaders


def _has_gaps(response: MetadataResponse) -> bool:
    return any(
        topic.error_code in STALE_METADATA
        or any(each.error_code in STALE_METADATA for each in topic.partitions)
        for topic in response.topics
    )


def _covers(known: frozenset[str] | None, wanted: frozenset[str] | None) -> bool:
    """Whether nothing is wanted beyond what is known; None is all topics."""
    return known is None if wanted is None else known is not None and wanted <= known


@attrs.frozen(kw_only=True)
class MetadataTimes:
    """When metadata are asked for.

    Attributes:
        max_age_seconds: after this they are asked for again though nobody wants it
            (``metadata.max.age.ms``).
        retry: the wait between two requests that somebody wants (``retry.backoff.ms``,
            ``retry.backoff.max.ms``).
        rebootstrap_seconds: after so long without a success the client starts again from
            ``bootstrap.servers`` (``metadata.recovery.rebootstrap.trigger.ms``, KIP-1102);
            ``math.inf`` for never (``metadata.recovery.strategy=none``).
    """

    max_age_seconds: float = 300.0
    retry: ExponentialBackoff = attrs.field(default=ExponentialBackoff(0.1, 1.0))
    rebootstrap_seconds: float = 300.0


class Metadata:
    """The cluster as a client knows it.

    Args:
        servers: hosts and ports of ``bootstrap.servers``.
        times: when to ask.
        chance: what blurs the waits.

    Attributes:
        cluster: the newest snapshot.
        topics: the topics to ask for; None for all there are. Change it with :meth:`want`.
        allow_auto_topic_creation: whether asking for a topic may make it
            (``allow.auto.create.topics``).
        updates: how often the cluster was described.
        error: why the last attempt failed; None after one that succeeded.
        errors: how many attempts have failed so far.
    """

    def __init__(
        self,
        servers: list[tuple[str, int]],
        times: MetadataTimes,
        chance: random.Random,
        *,
        allow_auto_topic_creation: bool = True,
    ) -> None:
        self.cluster = Cluster.bootstrap(servers)
        self.topics: frozenset[str] | None = frozenset()
        self.allow_auto_topic_creation = allow_auto_topic_creation
        self.updates = 0
        self.error: TrionetError | None = None
        self.errors = 0
        self._servers = servers
        self._times = times
        self._chance = chance
        self._wanted = True
        self._failures = 0
        self._tried_at = self._succeeded_at = -math.inf
        self._wait_seconds = 0.0
        self._unanswered_since: float | None = None
        self._asked_topics: frozenset[str] | None = frozenset()
        self._gaps = 0

    # When.

    def time_to_next_update(self, now: float) -> float:
        """Seconds until the next request is due."""
        due_at = -math.inf
        if not self._wanted:
            due_at = self._succeeded_at + self._times.max_age_seconds
        return max(0.0, max(due_at, self._tried_at + self._wait_seconds) - now)

    def request_update(self) -> int:
        """Have the next request made as soon as the wait after the last one allows.

        Returns:
            The number of updates so far; the one that was asked for has come when there are more.
        """
        self._wanted = True
        return self.updates

    def want(self, topics: frozenset[str] | None) -> None:
        """Ask for these topics from now on; None for all. New ones are asked for at once."""
        is_new = not _covers(self.topics, topics)
        self.topics = topics
        if is_new:
            self._wanted = True
            self._gaps = 0
            self._wait_seconds = 0.0

    def needs_rebootstrap(self, now: float) -> bool:
        """Whether asking has failed for so long that the brokers may all have moved (KIP-1102)."""
        since = self._unanswered_since
        return since is not None and now - since > self._times.rebootstrap_seconds

    def age(self, now: float) -> float:
        """Seconds since the cluster was described; for ever before that."""
        return now - self._succeeded_at

    @property
    def can_rebootstrap(self) -> bool:
        """``metadata.recovery.strategy`` is ``rebootstrap``."""
        return self._times.rebootstrap_seconds < math.inf

    # What.

    def request(self) -> MetadataRequest:
        """What to ask for."""
        names = self.topics
        topics = None
        if names is not None:
            topics = [MetadataRequestTopic(name=name) for name in sorted(names)]
        return MetadataRequest(
            topics=topics, allow_auto_topic_creation=self.allow_auto_topic_creation
        )

    def asking_since(self, now: float) -> None:
        """An update was due, and somebody to be asked is looked for."""
        if self._unanswered_since is None:
            self._unanswered_since = now

    def asked(self, now: float) -> None:
        """A request is sent."""
        self._tried_at = now
        self._asked_topics = self.topics
        self.asking_since(now)

    def update(self, response: MetadataResponse, now: float) -> None:
        """An answer came; one without any broker is a failure (Kafka: DefaultMetadataUpdater).

        One that lacks something that will be there soon, such as the leader of a new topic, is
        asked for again, after ever longer waits; so are topics that became known to be wanted
        after the question (Kafka: Metadata.requestUpdate, needPartialUpdate).
        """
        if not response.brokers:
            self.failed(now)
            return
        self.cluster = described(response, self.cluster, is_partial=False)
        self.updates += 1
        self.error = None
        self._gaps = self._gaps + 1 if _has_gaps(response) else 0
        self._wanted = self._gaps > 0 or not _covers(self._asked_topics, self.topics)
        self._failures = 0
        self._tried_at = self._succeeded_at = now
        self._unanswered_since = None
        self._wait_seconds = self._times.retry.seconds(self._gaps or 1, self._chance)

    def update_leaders(
        self, leaders: Mapping[TopicPartition, tuple[int, int]], nodes: Iterable[Node]
    ) -> None:
        """An answer to another question told of new leaders; see :func:`._cluster.with_leaders`."""
        self.cluster = with_leaders(self.cluster, leaders, nodes)

    def failed(self, now: float, error: TrionetError | None = None) -> None:
        """No answer came, or none that helps."""
        self.error = error
        self.errors += 1
        self._wanted = True
        self._failures += 1
        self._tried_at = now
        self._wait_seconds = self._times.retry.seconds(self._failures, self._chance)

    def require_rebootstrap(self) -> None:
        """A broker asked for a new start (REBOOTSTRAP_REQUIRED)."""
        self._unanswered_since = -math.inf

    def rebootstrap(self, now: float) -> None:
        """Start again from ``bootstrap.servers`` (KIP-899); the topics stay known."""
        known = Cluster.bootstrap(self._servers)
        self.cluster = attrs.evolve(known, id=self.cluster.id, topics=self.cluster.topics)
        self._wanted = True
        self._wait_seconds = 0.0
        self._unanswered_since = now
