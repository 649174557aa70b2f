"""Incremental fetches: the broker remembers what a consumer fetches, the consumer sends changes.

(KIP-227; Kafka: FetchSession, FetchManager.) Pure: the time is a parameter.

An epoch of -1 asks for a full fetch without a session (and ends the one named), 0 for a full fetch
that begins a session, any other continues one and must be exactly the next.
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

# A partition is named by topic name up to version 12 and by topic id from 13 on.
PartitionKey = tuple[str | bytes, int]


class FetchedPartition:
    """What a consumer wants of one partition, and what it was told last."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "high_watermark",
        "key",
        "log_start_offset",
        "max_bytes",
    )

    def __init__(
        self, key: PartitionKey, fetch_offset: int, max_bytes: int, current_leader_epoch: int
    ) -> None:
        self.key = key
        self.fetch_offset = fetch_offset
        self.max_bytes = max_bytes
        self.current_leader_epoch = current_leader_epoch
        self.high_watermark = -1
        self.log_start_offset = -1

    def has_news(self, data: PartitionData) -> bool:
        """Whether an incremental answer has to mention the partition; remembers what it says."""
        changed = bool(
            data.records
            or data.error_code
            or data.high_watermark != self.high_watermark
            or data.log_start_offset != self.log_start_offset
        )
        self.high_watermark = data.high_watermark
        self.log_start_offset = data.log_start_offset
        if data.error_code:
            # Said again in every answer until it is over, whatever the watermarks are then.
            self.high_watermark = -1
        return changed


class FetchSession:
    """One consumer's partitions, in the order in which they are to be served."""

    __slots__ = ("created", "epoch", "id", "last_used", "partitions", "uses_topic_ids")

    def __init__(self, id: int, uses_topic_ids: bool, now: float) -> None:
        self.id = id
        self.epoch = 1
        self.uses_topic_ids = uses_topic_ids
        self.created = now
        self.last_used = now
        self.partitions: OrderedDict[PartitionKey, FetchedPartition] = OrderedDict()

    def served(self, key: PartitionKey) -> None:
        """Serve this partition last the next time, so that none starves behind the others."""
        if key in self.partitions:  # a later fetch, on another connection, may have forgotten it
            self.partitions.move_to_end(key)


class FetchContext:
    """The partitions of one fetch and the session that they belong to, if any."""

    __slots__ = ("is_incremental", "partitions", "session")

    def __init__(
        self,
        partitions: list[FetchedPartition],
        session: FetchSession | None = None,
        is_incremental: bool = False,
    ) -> None:
        self.partitions = partitions
        self.session = session
        self.is_incremental = is_incremental

    @property
    def session_id(self) -> int:
        return self.session.id if self.session is not None else 0


class FetchSessionCache:
    """The sessions of all consumers.

    A full cache makes room as Kafka's does (FetchSessionCacheShard.tryEvict): a session goes that
    was not used for a while, or that is not young any more and smaller than the new one. Without
    room a consumer fetches without a session, which costs it more bytes and nothing else.

    Args:
        slots: ``max.incremental.fetch.session.cache.slots``; 0 turns sessions off.
        eviction_seconds: ``min.incremental.fetch.session.eviction.ms``.
        chance: what ids are drawn from.
        elements: how many partitions all of them may have
            (``max.incremental.fetch.session.cache.elements``).

    Attributes:
        elements: how many partitions the sessions have.
    """

    def __init__(
        self,
        slots: int,
        eviction_seconds: float = 120.0,
        chance: random.Random = SYSTEM.chance,
        *,
        elements: int = 250_000,
    ) -> None:
        self.elements = 0
        self._chance = chance
        self._slots = slots
        self._elements_max = elements
        self._eviction_seconds = eviction_seconds
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()  # least recently used first

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def sessions(self) -> list[FetchSession]:
        """All of them, the one that was unused longest first."""
        return list(self._sessions.values())

    def get(self, id: int) -> FetchSession | None:
        """The session with this id, if there is one."""
        return self._sessions.get(id)

    def open(self, request: FetchRequest, version: int, now: float) -> FetchContext:
        """What a request fetches, after its changes to its session were taken over.

        Raises:
            ApiError: the session is unknown, or the request is not its next one.
        """
        uses_topic_ids = version >= 13
        if request.session_epoch in (FINAL_EPOCH, INITIAL_EPOCH):
            self._remove(request.session_id)
            partitions: dict[PartitionKey, FetchedPartition] = {}
            for topic in request.topics:
                name = topic.topic_id if uses_topic_ids else topic.topic
                for wanted in topic.partitions:
                    key = (name, wanted.partition)
                    partitions[key] = FetchedPartition(
                        key,
                        wanted.fetch_offset,
                        wanted.partition_max_bytes,
                        wanted.current_leader_epoch,
                    )
            return self._full(request, partitions, uses_topic_ids, now)
        session = self._continue(request, uses_topic_ids, now)
        if request.topics:
            for fetched in _partitions(request, uses_topic_ids):
                self._take_over(session, fetched)
        if request.forgotten_topics_data:
            for key in _forgotten(request, uses_topic_ids):
                self._forget(session, key)
        return self._incremental(session)

    def opening(
        self, request: FetchRequest, version: int, now: float
    ) -> Generator[None, None, FetchContext]:
        """As :meth:`open`, stopping at each partition: a request may have 250,000."""
        uses_topic_ids = version >= 13
        if request.session_epoch in (FINAL_EPOCH, INITIAL_EPOCH):
            self._remove(request.session_id)
            # Of a partition that is named twice the last one counts, as in Kafka.
            partitions: dict[PartitionKey, FetchedPartition] = {}
            for wanted in _partitions(request, uses_topic_ids):
                partitions[wanted.key] = wanted
                yield
            return self._full(request, partitions, uses_topic_ids, now)
        session = self._continue(request, uses_topic_ids, now)
        for wanted in _partitions(request, uses_topic_ids):
            self._take_over(session, wanted)
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
        """Whether it has not gone while a request to it was read."""
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
        # Unpredictable: whoever guesses an id can end another consumer's session.
        id = self._chance.randint(1, _EPOCH_MAX)
        while id in self._sessions:
            id = self._chance.randint(1, _EPOCH_MAX)
        session = self._sessions[id] = FetchSession(id, uses_topic_ids, now)
        session.partitions = OrderedDict(partitions)
        self.elements += len(partitions)
        return session

    def _make_room(self, size: int, now: float) -> bool:
        """See that a session of so many partitions has room; False if there is none."""
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
        """The smallest session below a size that is not young any more."""
        found = None
        for session in self._sessions.values():
            if now - session.created >= self._eviction_seconds and len(session.partitions) < size:
                found = session
                size = len(session.partitions)
        return found

    def _continue(self, request: FetchRequest, uses_topic_ids: bool, now: float) -> FetchSession:
        session = self._sessions.get(request.session_id)
        if session is None:
            raise ApiError(error_codes.FETCH_SESSION_ID_NOT_FOUND, "no such fetch session")
        if session.epoch != request.session_epoch:
            raise ApiError(
                error_codes.INVALID_FETCH_SESSION_EPOCH,
                f"epoch {request.session_epoch} came where {session.epoch} was next",
            )
        if session.uses_topic_ids != uses_topic_ids:
            raise ApiError(
                error_codes.FETCH_SESSION_TOPIC_ID_ERROR,
                "a session goes on naming topics as it began: by name or by id",
            )
        session.epoch = 1 if session.epoch == _EPOCH_MAX else session.epoch + 1
        session.last_used = now
        self._sessions.move_to_end(session.id)
        return session

    def _take_over(self, session: FetchSession, wanted: FetchedPartition) -> None:
        known = session.partitions.get(wanted.key)
        if known is not None:
            known.fetch_offset = wanted.fetch_offset
            known.max_bytes = wanted.max_bytes
            known.current_leader_epoch = wanted.current_leader_epoch
            return
        if not self._is_kept(session) or self.elements >= self._elements_max:
            # The consumer begins anew, without a session if there is no room then either.
            self._remove(session.id)
            raise ApiError(
                error_codes.FETCH_SESSION_ID_NOT_FOUND,
                f"all fetch sessions together may have {self._elements_max} partitions "
                "(max.incremental.fetch.session.cache.elements)",
            )
        session.partitions[wanted.key] = wanted
        self.elements += 1


def _partitions(request: FetchRequest, uses_topic_ids: bool) -> Iterator[FetchedPartition]:
    for topic in request.topics:
        name = topic.topic_id if uses_topic_ids else topic.topic
        for wanted in topic.partitions:
            yield FetchedPartition(
                (name, wanted.partition),
                wanted.fetch_offset,
                wanted.partition_max_bytes,
                wanted.current_leader_epoch,
            )


def _forgotten(request: FetchRequest, uses_topic_ids: bool) -> Iterator[PartitionKey]:
    for forgotten in request.forgotten_topics_data:
        name = forgotten.topic_id if uses_topic_ids else forgotten.topic
        for index in forgotten.partitions:
            yield name, index
