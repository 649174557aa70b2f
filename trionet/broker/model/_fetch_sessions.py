"""Incremental fetch sessions (KIP-227; Kafka: FetchSession, FetchManager).

This module performs no I/O and reads no clock.

The problem: a consumer of thousands of partitions would send and receive the whole list of
partitions in every fetch, even though only a few have changed. In a session, the broker keeps the
list, and both sides send only changes.

The epoch of a request selects its meaning. Epoch -1 is a full fetch without a session, and ends the
session that it names. Epoch 0 is a full fetch that starts a session. Any other epoch must be the
next epoch of the session. A lost response therefore leads to an invalid epoch, after which the
consumer starts a new session.

The choices:

* Sessions are kept in order of their last use, so that the least recently used session is found in
  constant time. Eviction follows Kafka's rules. A scan finds the smallest old session, and is
  needed only if the cache is full; Kafka maintains two more sorted trees instead.
* Besides Kafka's limit on sessions, the total number of partitions is limited: 1,000 sessions of
  250,000 partitions each would not fit in memory.
* Requests with many partitions are read by a generator (:meth:`FetchSessionCache.open_in_steps`),
  so that other tasks run between its steps. Small requests are read by plain loops, which are
  faster.

Rejected: sessions tied to a connection. They would need no ids or epochs, but the protocol allows a
consumer to continue a session on another connection.

Race: while a generator is suspended, another request may evict or end the session. After that,
``elements`` must not be changed for the session; :meth:`FetchSessionCache._is_kept` checks this.

Reconsider if evictions become frequent with many sessions: each eviction scans all sessions.
"""

# Compiled by mypyc.

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Generator, Iterator
from typing import Final

from ...errors import ApiError
from ...net._network import SYSTEM
from ...protocol import error_codes
from ...protocol.messages.fetch import FetchRequest, PartitionData

FINAL_EPOCH: Final = -1
INITIAL_EPOCH: Final = 0
_EPOCH_MAX = 2**31 - 1

# Partitions are identified by topic name up to version 12, and by topic id from 13 on.
PartitionKey = tuple[str | bytes, int]
# A client id, which is empty for null and at most so long, and the IP address of the client.
Client = tuple[str, str]
CLIENT_ID_CHARS_MAX: Final = 256


def client_of(client_id: str | None, peer_address: str) -> Client:
    """Return what is kept of a client, which chooses its id, of up to 32 KiB."""
    return (client_id or "")[:CLIENT_ID_CHARS_MAX], peer_address


class FetchedPartition:
    """A partition of a session: the consumer's request, and the offsets last reported to it."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "high_watermark",
        "key",
        "last_fetched_epoch",
        "log_start_offset",
        "max_bytes",
    )

    def __init__(
        self,
        key: PartitionKey,
        fetch_offset: int,
        max_bytes: int,
        current_leader_epoch: int,
        last_fetched_epoch: int = -1,
    ) -> None:
        self.key = key
        self.fetch_offset = fetch_offset
        self.max_bytes = max_bytes
        self.current_leader_epoch = current_leader_epoch
        self.last_fetched_epoch = last_fetched_epoch
        self.high_watermark = -1
        self.log_start_offset = -1

    def has_news(self, data: PartitionData) -> bool:
        """Return whether an incremental response must include ``data``, and record its offsets."""
        changed = bool(
            data.records
            or data.error_code
            or data.high_watermark != self.high_watermark
            or data.log_start_offset != self.log_start_offset
        )
        self.high_watermark = data.high_watermark
        self.log_start_offset = data.log_start_offset
        if data.error_code:
            # Included in every response until the error is gone, whatever the watermarks are then.
            self.high_watermark = -1
        return changed


class FetchSession:
    """The partitions of one consumer, in the order in which they are served.

    Attributes:
        client: the client that began the session.
    """

    __slots__ = ("client", "created", "epoch", "id", "last_used", "partitions", "uses_topic_ids")

    def __init__(self, id: int, uses_topic_ids: bool, now: float) -> None:
        self.id: int = id
        self.epoch: int = 1
        self.uses_topic_ids: bool = uses_topic_ids
        self.created: float = now
        self.last_used: float = now
        self.client: Client = ("", "")
        self.partitions: OrderedDict[PartitionKey, FetchedPartition] = OrderedDict()

    def served(self, key: PartitionKey) -> None:
        """Move a partition to the end, so that the next fetch serves the others first."""
        if key in self.partitions:  # a fetch on another connection may have removed it
            self.partitions.move_to_end(key)


class FetchContext:
    """The partitions of one fetch, and its session, if any."""

    __slots__ = ("is_incremental", "partitions", "session")

    def __init__(
        self,
        partitions: list[FetchedPartition],
        session: FetchSession | None = None,
        is_incremental: bool = False,
    ) -> None:
        self.partitions: list[FetchedPartition] = partitions
        self.session: FetchSession | None = session
        self.is_incremental: bool = is_incremental

    @property
    def session_id(self) -> int:
        return self.session.id if self.session is not None else 0


class FetchSessionCache:
    """The fetch sessions of all consumers.

    A full cache evicts a session that has been idle for some time or, failing that, an old session
    that is smaller than the new one (Kafka: FetchSessionCacheShard.tryEvict). If no session can be
    evicted, the consumer fetches without a session, which only costs bandwidth.

    Args:
        slots: the maximum number of sessions (``max.incremental.fetch.session.cache.slots``); 0
            disables sessions.
        eviction_seconds: the minimum age or idle time before a session may be evicted
            (``min.incremental.fetch.session.eviction.ms``).
        rng: the random generator for session ids.
        elements: the maximum total number of partitions in all sessions
            (``max.incremental.fetch.session.cache.elements``).

    Attributes:
        elements: the current total number of partitions in all sessions.
    """

    def __init__(
        self,
        slots: int,
        eviction_seconds: float = 120.0,
        rng: random.Random = SYSTEM.rng,
        *,
        elements: int = 250_000,
    ) -> None:
        self.elements: int = 0
        self._rng = rng
        self._slots = slots
        self._elements_max = elements
        self._eviction_seconds = eviction_seconds
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()  # least recently used first

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def sessions(self) -> list[FetchSession]:
        """All sessions, the least recently used first."""
        return list(self._sessions.values())

    def get(self, id: int) -> FetchSession | None:
        """Return the session with this id, or None."""
        return self._sessions.get(id)

    def open(self, request: FetchRequest, version: int, now: float) -> FetchContext:
        """Apply a request's changes to its session, and return the partitions to fetch.

        Raises:
            ApiError: the session does not exist or cannot grow, or the request does not match the
                session.
        """
        uses_topic_ids = version >= 13
        if request.session_epoch in (FINAL_EPOCH, INITIAL_EPOCH):
            self._remove(request.session_id)
            partitions: dict[PartitionKey, FetchedPartition] = {}
            for topic in request.topics:
                name = topic.topic_id if uses_topic_ids else topic.topic
                for requested in topic.partitions:
                    key = (name, requested.partition)
                    partitions[key] = FetchedPartition(
                        key,
                        requested.fetch_offset,
                        requested.partition_max_bytes,
                        requested.current_leader_epoch,
                        requested.last_fetched_epoch,
                    )
            return self._full(request, partitions, uses_topic_ids, now)
        session = self._continue(request, uses_topic_ids, now)
        if request.topics:
            for fetched in _partitions(request, uses_topic_ids):
                self._update(session, fetched)
        if request.forgotten_topics_data:
            for key in _forgotten(request, uses_topic_ids):
                self._forget(session, key)
        return self._incremental(session)

    def open_in_steps(
        self, request: FetchRequest, version: int, now: float
    ) -> Generator[None, None, FetchContext]:
        """Like :meth:`open`, but yield after each partition, since a request may have 250,000."""
        uses_topic_ids = version >= 13
        if request.session_epoch in (FINAL_EPOCH, INITIAL_EPOCH):
            self._remove(request.session_id)
            # If a partition is repeated, the last entry wins, as in Kafka.
            partitions: dict[PartitionKey, FetchedPartition] = {}
            for requested in _partitions(request, uses_topic_ids):
                partitions[requested.key] = requested
                yield
            return self._full(request, partitions, uses_topic_ids, now)
        session = self._continue(request, uses_topic_ids, now)
        for requested in _partitions(request, uses_topic_ids):
            self._update(session, requested)
            yield
        for key in _forgotten(request, uses_topic_ids):
            self._forget(session, key)
            yield
        return self._incremental(session)

    def _full(
        self,
        request: FetchRequest,
        partitions: dict[PartitionKey, FetchedPartition],
        uses_topic_ids: bool,
        now: float,
    ) -> FetchContext:
        session = None
        if request.session_epoch == INITIAL_EPOCH and partitions:
            session = self._begin(partitions, uses_topic_ids, now)
        return FetchContext(list(partitions.values()), session)

    def _forget(self, session: FetchSession, key: PartitionKey) -> None:
        if session.partitions.pop(key, None) is not None:
            self.elements -= self._is_kept(session)

    def _incremental(self, session: FetchSession) -> FetchContext:
        if not session.partitions:
            self._remove(session.id)
            return FetchContext([])
        return FetchContext(list(session.partitions.values()), session, is_incremental=True)

    def _is_kept(self, session: FetchSession) -> bool:
        """Return whether a session still exists, since it may end while a request is being read."""
        return self._sessions.get(session.id) is session

    def _remove(self, id: int) -> None:
        session = self._sessions.pop(id, None)
        if session is not None:
            self.elements -= len(session.partitions)

    def _begin(
        self,
        partitions: dict[PartitionKey, FetchedPartition],
        uses_topic_ids: bool,
        now: float,
    ) -> FetchSession | None:
        if not self._make_room(len(partitions), now):
            return None
        # Unpredictable: a client that guesses an id can end another consumer's session.
        id = self._rng.randint(1, _EPOCH_MAX)
        while id in self._sessions:
            id = self._rng.randint(1, _EPOCH_MAX)
        session = self._sessions[id] = FetchSession(id, uses_topic_ids, now)
        session.partitions = OrderedDict(partitions)
        self.elements += len(partitions)
        return session

    def _make_room(self, size: int, now: float) -> bool:
        """Evict sessions to make room for ``size`` partitions; return False if impossible."""
        if not self._slots or size > self._elements_max:
            return False
        while len(self._sessions) >= self._slots or self.elements + size > self._elements_max:
            oldest = next(iter(self._sessions.values()))
            if now - oldest.last_used < self._eviction_seconds:
                smaller = self._smallest(size, now)
                if smaller is None:
                    return False
                oldest = smaller
            self._remove(oldest.id)
        return True

    def _smallest(self, size: int, now: float) -> FetchSession | None:
        """Return the smallest session under ``size`` partitions that is old enough to evict."""
        found = None
        for session in self._sessions.values():
            if now - session.created >= self._eviction_seconds and len(session.partitions) < size:
                found = session
                size = len(session.partitions)
        return found

    def _continue(self, request: FetchRequest, uses_topic_ids: bool, now: float) -> FetchSession:
        session = self._sessions.get(request.session_id)
        if session is None:
            raise ApiError(
                error_codes.FETCH_SESSION_ID_NOT_FOUND,
                f"fetch session {request.session_id} does not exist",
            )
        if session.epoch != request.session_epoch:
            raise ApiError(
                error_codes.INVALID_FETCH_SESSION_EPOCH,
                f"the session epoch is {request.session_epoch}; expected {session.epoch}",
            )
        if session.uses_topic_ids != uses_topic_ids:
            raise ApiError(
                error_codes.FETCH_SESSION_TOPIC_ID_ERROR,
                "a session must identify topics consistently, either by name or by id",
            )
        session.epoch = 1 if session.epoch == _EPOCH_MAX else session.epoch + 1
        session.last_used = now
        self._sessions.move_to_end(session.id)
        return session

    def _update(self, session: FetchSession, requested: FetchedPartition) -> None:
        known = session.partitions.get(requested.key)
        if known is not None:
            known.fetch_offset = requested.fetch_offset
            known.max_bytes = requested.max_bytes
            known.current_leader_epoch = requested.current_leader_epoch
            known.last_fetched_epoch = requested.last_fetched_epoch
            return
        if not self._is_kept(session) or self.elements >= self._elements_max:
            # The consumer starts over, without a session if the cache is still full.
            self._remove(session.id)
            raise ApiError(
                error_codes.FETCH_SESSION_ID_NOT_FOUND,
                f"fetch sessions have reached their limit of {self._elements_max} partitions in"
                " total (max.incremental.fetch.session.cache.elements)",
            )
        session.partitions[requested.key] = requested
        self.elements += 1


def _partitions(request: FetchRequest, uses_topic_ids: bool) -> Iterator[FetchedPartition]:
    for topic in request.topics:
        name = topic.topic_id if uses_topic_ids else topic.topic
        for requested in topic.partitions:
            yield FetchedPartition(
                (name, requested.partition),
                requested.fetch_offset,
                requested.partition_max_bytes,
                requested.current_leader_epoch,
                requested.last_fetched_epoch,
            )


def _forgotten(request: FetchRequest, uses_topic_ids: bool) -> Iterator[PartitionKey]:
    for forgotten in request.forgotten_topics_data:
        name = forgotten.topic_id if uses_topic_ids else forgotten.topic
        for index in forgotten.partitions:
            yield name, index
