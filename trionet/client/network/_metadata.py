"""A client's view of the cluster, and the schedule of its updates.

(Kafka: Metadata.) Performs no I/O; ``now``, the time on the event loop's clock in seconds, is
always a parameter. A full update, of all topics in use, is due when one has been requested (because
a connection was lost, or all topics came into use) or when the last one is older than
``metadata.max.age.ms``. A partial update, of some topics, is due when topics were added, when
something is missing in the response about a topic, or when a request about it has failed.

**The problem.** Every failure calls for new metadata, and often all requests of a client fail at
the same time; a metadata request per failure would burden a cluster in trouble. On the other hand,
a new topic should be usable as soon as the broker knows about it, and its cost should not grow with
the number of topics in use.

**The choice.** Calls only record what is wanted, so that any number of them lead to one request,
after a backoff that grows while updates fail or responses have gaps (such as a topic without a
leader). Only topics that were never requested skip the backoff, alone. The response to a partial
update replaces the topics in it; a full one replaces all topics, so that those no longer in use are
forgotten. Snapshots are immutable, so that a snapshot in use never changes.

**What was refused.** A full update for a topic with a gap, as in Kafka: with a thousand topics that
a broker is about to create, each request would be about all of them. A backoff for each topic: the
gaps of several topics usually have one cause.
"""

# Compiled by mypyc.

from __future__ import annotations

import math
import random
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet

import attrs

from ...errors import TrionetError
from ...protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from .._api_errors import STALE_METADATA
from .._network_settings import MetadataTimes
from .._topic_partition import TopicPartition
from ._cluster import Cluster, Node, described, with_leaders, without_topic


def _gaps(response: MetadataResponse) -> set[str]:
    """Return the topics about which the response lacks something that is expected soon."""
    return {
        topic.name
        for topic in response.topics
        if topic.name is not None
        and (
            topic.error_code in STALE_METADATA
            or any(each.error_code in STALE_METADATA for each in topic.partitions)
        )
    }


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
        topics: the topics in use; None for all. Only the methods of this class may change it.
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
        self.topics: set[str] | None = set()
        self.allow_auto_topic_creation = allow_auto_topic_creation
        self.updates: int = 0
        self.has_all_topics = False
        self.error: TrionetError | None = None
        self.errors: int = 0
        self._servers = servers
        self._times = times
        self._rng = rng
        self._wanted = True  # a full update
        self._has_dropped = False  # so that the next update must forget topics
        # Topics to request at once, and topics to request as soon as the backoff allows.
        self._new: set[str] = set()
        self._missing: set[str] = set()
        self._backoff_ends_at = self._succeeded_at = -math.inf
        self._failures = self._responses_with_gaps = 0
        self._waiting_since: float | None = None
        # The last request: its topics, None for all; whether it was for a full update; and whether
        # new topics could not wait for the end of the backoff.
        self._asked: set[str] | None = set()
        self._is_full = True
        self._is_early = False

    # When to update.

    def time_to_next_update(self, now: float) -> float:
        """Return the seconds until the next update is due."""
        if self._new:
            return 0.0
        due_at = -math.inf
        if not self._wanted and not self._missing:
            due_at = self._succeeded_at + self._times.max_age_seconds
        return max(0.0, max(due_at, self._backoff_ends_at) - now)

    def request_update(self) -> int:
        """Request a full update as soon as the backoff allows.

        Returns:
            The current value of :attr:`updates`, which becomes larger once an update has succeeded.
        """
        self._wanted = True
        return self.updates

    def request_topics(self, names: Iterable[str]) -> int:
        """Request the metadata of some topics as soon as the backoff allows.

        Args:
            names: the topics; those that are not in use are ignored.

        Returns:
            See :meth:`request_update`.
        """
        if self.topics is None:
            return self.request_update()
        in_use = self.topics
        self._missing.update(name for name in names if name in in_use and name not in self._new)
        return self.updates

    def add_topics(self, names: Iterable[str]) -> None:
        """Add topics to those in use, and request the metadata of new topics at once.

        An error of a new topic from when it was last in use is forgotten: it may have passed.
        """
        if self.topics is not None:
            for name in names:
                if name not in self.topics:
                    self.topics.add(name)
                    self._new.add(name)
                    known = self.cluster.topics.get(name)
                    if known is not None and known.error_code:
                        self.cluster = without_topic(self.cluster, name)

    def remove_topics(self, names: Collection[str]) -> None:
        """Remove topics from those in use; their metadata is kept until the next full update."""
        if self.topics is not None:
            for each in (self.topics, self._new, self._missing):
                each.difference_update(names)

    def set_topics(self, topics: AbstractSet[str] | None) -> None:
        """Set the topics in use; None for all. New topics are requested at once.

        Others are forgotten with the next full update, which is the next that need not be early.
        """
        before = self.topics
        if topics is None:
            self.topics = None
            self._new.clear()
            self._missing.clear()
            if before is not None:
                self._wanted = True
                self._backoff_ends_at = -math.inf
        else:
            self.topics = set(topics)
            self._new &= topics
            self._new |= topics if before is None else topics - before
            self._missing &= topics
            self._has_dropped |= before is None or not before <= topics

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

    def request(self, now: float) -> MetadataRequest:
        """Return the next Metadata request, which the caller sends now."""
        self.attempt_started(now)
        self._is_early = now < self._backoff_ends_at
        is_aged = now >= self._succeeded_at + self._times.max_age_seconds
        is_full = self._wanted or self._has_dropped or is_aged
        self._is_full = is_full and not self._is_early
        if self._is_full:
            self._has_dropped = False  # unless topics are dropped while the request is in flight
        if self._new:
            self._responses_with_gaps = 0
        missing: set[str] = set() if self._is_early else self._missing
        names = self.topics if self._is_full else self._new | missing
        self._asked = None if names is None else set(names)
        self._take_new()
        topics = None
        if names is not None:
            topics = [MetadataRequestTopic(name=name) for name in sorted(names)]
        return MetadataRequest(
            topics=topics, allow_auto_topic_creation=self.allow_auto_topic_creation
        )

    def _take_new(self) -> None:
        """Make the new topics wait for the backoff from now on."""
        self._missing |= self._new
        self._new.clear()

    def attempt_started(self, now: float) -> None:
        """Record that an update is due and that the client is choosing a node."""
        if self._waiting_since is None:
            self._waiting_since = now

    def update(self, response: MetadataResponse, now: float) -> None:
        """Apply a response; a response without (usable) brokers counts as a failure.

        Another update is requested, with a growing backoff, if the response lacks something that is
        expected soon, such as the leader of a new topic, or if topics were added after the request
        was sent (Kafka: Metadata.requestUpdate, needPartialUpdate).
        """
        cluster = described(response, self.cluster, is_partial=not self._is_full)
        if not cluster.nodes:
            self.failed(now)
            return
        self.cluster = cluster
        self.updates += 1
        self.has_all_topics = self._asked is None
        self.error = None
        self._failures = 0
        self._waiting_since = None
        gaps = _gaps(response)
        if self._is_full:
            self._succeeded_at = now
            is_short = bool(gaps) or self._asked is not None
            self._wanted = self.topics is None and is_short
        if self._asked is not None:
            self._missing -= self._asked
        if self.topics is not None:
            self._missing |= gaps & self.topics
        self._back_off(now, has_gaps=bool(gaps))

    def _back_off(self, now: float, *, has_gaps: bool) -> None:
        """Set the end of the backoff after a successful update."""
        if not self._is_early:
            self._responses_with_gaps = self._responses_with_gaps + 1 if has_gaps else 0
            seconds = self._times.retry.seconds(self._responses_with_gaps or 1, self._rng)
            self._backoff_ends_at = now + seconds
        elif has_gaps:
            # The gaps of new topics are filled soon; what waits for longer is requested with them.
            seconds = self._times.retry.seconds(1, self._rng)
            self._backoff_ends_at = min(self._backoff_ends_at, now + seconds)

    def update_leaders(
        self, leaders: Mapping[TopicPartition, tuple[int, int]], nodes: Mapping[int, Node]
    ) -> None:
        """Apply leaders from a Produce or Fetch response; see :func:`._cluster.with_leaders`."""
        self.cluster = with_leaders(self.cluster, leaders, nodes)

    def failed(self, now: float, error: TrionetError | None = None) -> None:
        """Record a failed update."""
        self.error = error
        self.errors += 1
        self._wanted = True
        self._take_new()
        self._failures += 1
        self._backoff_ends_at = now + self._times.retry.seconds(self._failures, self._rng)

    def require_rebootstrap(self) -> None:
        """Make the next update rebootstrap; a broker has responded REBOOTSTRAP_REQUIRED."""
        self._waiting_since = -math.inf

    def rebootstrap(self, now: float) -> None:
        """Return to ``bootstrap.servers`` (KIP-899), keeping the known topics."""
        known = Cluster.bootstrap(self._servers)
        self.cluster = attrs.evolve(known, id=self.cluster.id, topics=self.cluster.topics)
        self._wanted = True
        self._backoff_ends_at = -math.inf
        self._waiting_since = now
