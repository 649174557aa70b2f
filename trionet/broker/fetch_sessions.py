"""Incremental fetches: the broker remembers what a consumer fetches, the consumer sends changes.

(KIP-227; Kafka: FetchSession, FetchManager.) Pure: the time is a parameter.

An epoch of -1 asks for a full fetch without a session (and ends the one named), 0 for a full fetch
that begins a session, any other continues one and must be exactly the next.
"""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Iterable

from ..errors import ApiError
from ..net.network import SYSTEM
from ..protocol import error_codes
from ..protocol.messages.fetch import FetchRequest, PartitionData

FINAL_EPOCH = -1
INITIAL_EPOCH = 0
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

    __slots__ = ("epoch", "id", "last_used", "partitions", "uses_topic_ids")

    def __init__(self, id: int, uses_topic_ids: bool, now: float) -> None:
        self.id = id
        self.epoch = 1
        self.uses_topic_ids = uses_topic_ids
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

    Args:
        slots: ``max.incremental.fetch.session.cache.slots``; 0 turns sessions off.
        eviction_seconds: a full cache drops its oldest session only if it was unused this long
            (``min.incremental.fetch.session.eviction.ms``).
        chance: what ids are drawn from.
    """

    def __init__(
        self,
        slots: int,
        eviction_seconds: float = 120.0,
        chance: random.Random = SYSTEM.chance,
    ) -> None:
        self._chance = chance
        self._slots = slots
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
            self._sessions.pop(request.session_id, None)
            partitions = list(_partitions(request, uses_topic_ids))
            session = None
            if request.session_epoch == INITIAL_EPOCH and partitions:
                session = self._begin(partitions, uses_topic_ids, now)
            return FetchContext(partitions, session)
        session = self._continue(request, uses_topic_ids, now)
        if not session.partitions:
            del self._sessions[session.id]
            return FetchContext([])
        return FetchContext(list(session.partitions.values()), session, is_incremental=True)

    def _begin(
        self, partitions: list[FetchedPartition], uses_topic_ids: bool, now: float
    ) -> FetchSession | None:
        if len(self._sessions) >= self._slots and not self._evict(now):
            return None
        # Unpredictable: whoever guesses an id can end another consumer's session.
        id = self._chance.randint(1, _EPOCH_MAX)
        while id in self._sessions:
            id = self._chance.randint(1, _EPOCH_MAX)
        session = self._sessions[id] = FetchSession(id, uses_topic_ids, now)
        session.partitions.update((partition.key, partition) for partition in partitions)
        return session

    def _evict(self, now: float) -> bool:
        if not self._sessions:
            return False
        oldest = next(iter(self._sessions.values()))
        if now - oldest.last_used < self._eviction_seconds:
            return False
        del self._sessions[oldest.id]
        return True

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
        for wanted in _partitions(request, uses_topic_ids):
            known = session.partitions.get(wanted.key)
            if known is None:
                session.partitions[wanted.key] = wanted
            else:
                known.fetch_offset = wanted.fetch_offset
                known.max_bytes = wanted.max_bytes
                known.current_leader_epoch = wanted.current_leader_epoch
        for forgotten in request.forgotten_topics_data:
            name = forgotten.topic_id if uses_topic_ids else forgotten.topic
            for index in forgotten.partitions:
                session.partitions.pop((name, index), None)
        return session


def _partitions(request: FetchRequest, uses_topic_ids: bool) -> Iterable[FetchedPartition]:
    for topic in request.topics:
        name = topic.topic_id if uses_topic_ids else topic.topic
        for wanted in topic.partitions:
            yield FetchedPartition(
                (name, wanted.partition),
                wanted.fetch_offset,
                wanted.partition_max_bytes,
                wanted.current_leader_epoch,
            )
