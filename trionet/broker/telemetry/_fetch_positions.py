"""The positions of a group's members: the offsets from which they fetch next.

The committed offset of a consumer that commits every few seconds is thousands of records below
what the consumer has fetched. A broker learns of the latter in each fetch, but a fetch names no
group. Its client does have an id and an address, as members have, and members are assigned
partitions, so the fetcher of a member's partition is found by all three. If that is ambiguous, as
for two groups of clients with the same id that read the same topic, the position is unknown.

The positions are computed when a snapshot is taken, from what the broker keeps anyway: the fetch
sessions, and the fetches that wait for records, which have no session with some clients. Nothing is
recorded while requests are handled. A client without sessions has no known position while it
fetches as fast as it can.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from ...errors import WireFormatError
from ...protocol.messages.consumer_protocol_assignment import MESSAGES
from ..groups._group import CONSUMER, Group
from ..handlers._fetch import Fetch
from ..model._broker_state import BrokerState
from ..model._fetch_sessions import Client, FetchedPartition, client_of

#: A session that was not used for longer belongs to a client that is gone, or has stopped fetching.
IDLE_SECONDS_MAX: Final = 30.0
#: The maximum number of partitions whose positions are looked up for one page, a few milliseconds.
PARTITIONS_MAX: Final = 2_000
#: The maximum number of bytes of assignments that are decoded for one page, a few milliseconds.
ASSIGNMENT_BYTES_MAX: Final = 131_072
_decode = MESSAGES[0][0]
_VERSION_BYTES: Final = 2

Key = tuple[str, int]


class FetchPositions:
    """The offsets from which clients fetch next.

    Args:
        fetched: the clients, each with a partition that it fetches, named by topic name or id.
        name_of: returns the name of the topic with an id; None if there is none.
    """

    def __init__(
        self,
        fetched: Iterable[tuple[Client, FetchedPartition]],
        name_of: Callable[[bytes], str | None],
    ) -> None:
        self._offsets: dict[tuple[Client, Key], int | None] = {}
        self._left = PARTITIONS_MAX
        self._left_bytes = ASSIGNMENT_BYTES_MAX
        for client, partition in fetched:
            topic, index = partition.key
            name = topic if isinstance(topic, str) else name_of(topic)
            if name is None:
                continue
            key = client, (name, index)
            offset = partition.fetch_offset
            # None from the second that differs on.
            self._offsets[key] = offset if self._offsets.get(key, offset) == offset else None

    def of(self, group: Group) -> list[list[str | int]]:
        """Return the known positions of a group's members as ``[topic, partition, offset]``."""
        if group.protocol_type != CONSUMER:
            return []
        found: list[list[str | int]] = []
        for member in group.members:
            size = len(member.assignment)
            # Before it is decoded, which is all at once: clients choose the size.
            if self._left <= 0 or size > self._left_bytes:
                continue
            self._left_bytes -= size
            client = client_of(member.client_id, member.client_host.removeprefix("/"))
            for topic, index in _assigned(member.assignment):
                if self._left <= 0:
                    return found
                self._left -= 1
                offset = self._offsets.get((client, (topic, index)))
                if offset is not None:
                    found.append([topic, index, offset])
        return found


def fetch_positions(state: BrokerState, now: float) -> FetchPositions:
    """Return the current positions of the clients that fetch from a broker.

    Args:
        state: the state of the broker.
        now: the time in seconds on the loop's clock.
    """

    def name_of(id: bytes) -> str | None:
        topic = state.topics.by_id(id)
        return None if topic is None else topic.name

    return FetchPositions(_fetched(state, now), name_of)


def _fetched(state: BrokerState, now: float) -> Iterator[tuple[Client, FetchedPartition]]:
    left = PARTITIONS_MAX
    # The most recently used first.
    for session in reversed(state.fetch_sessions.sessions):
        if session.last_used < now - IDLE_SECONDS_MAX or len(session.partitions) > left:
            break
        left -= len(session.partitions)
        for partition in session.partitions.values():
            yield session.client, partition
    for operation in state.purgatory.waiting:
        if isinstance(operation, Fetch) and len(operation.partitions) <= left:
            left -= len(operation.partitions)
            client = operation.client
            for partition in operation.partitions:
                yield client, partition


def _assigned(assignment: bytes) -> Iterator[Key]:
    if not assignment:
        return
    try:
        found = _decode(bytes(assignment), _VERSION_BYTES)
    except WireFormatError:
        return  # a client with a format of its own
    for topic in found.assigned_partitions:
        for index in topic.partitions:
            yield topic.topic, index
