"""What a test asks of a broker and tells it, in the words that every kind of program uses.

:class:`Controls` has what does not wait. What waits is a coroutine in a trio program
(:class:`~trionet.testing.brokers._broker_control.BrokerControl`) and blocks in others
(:class:`~trionet.testing.brokers._threaded.ThreadedBroker`), under the same names.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter

import attrs

from ..._util._counted import counted
from ...broker import Broker
from ...broker.log import Log
from ...server._connection import Connection
from ..faults._faults import Apis, Faults
from ..faults._interception import Interception
from ..internals._broker_internals import InLoop, NodeInside, inside_of
from ..internals._broker_operations import Awaited
from ..internals._groups import GroupView, group_view
from ..internals._records import Record, records_in
from ..requests._seen_requests import SeenRequest, Which, api_keys_of

# How many lines a log shows, the last ones.
LOG_LINES_MAX = 200


@attrs.frozen
class ConnectionView:
    """An open connection of a broker.

    Attributes:
        id: names it, in faults and in requests.
        node: the ``node.id`` of the broker.
        peer: the address and port at the far end.
        software: what the client calls itself and its version.
        principal: who it is, as ``User:ANONYMOUS``.
        requests: how many it has sent.
    """

    id: str
    node: int
    peer: str
    software: tuple[str, str]
    principal: str
    requests: int


class Controls:
    """A running broker, as a test sees it.

    Args:
        broker: what is running; all its requests pass here from now on.
        in_loop: calls a function in its loop.

    Attributes:
        faults: what it does wrong on demand; see :class:`~trionet.testing.faults._faults.Faults`.
    """

    def __init__(self, broker: Broker, in_loop: InLoop) -> None:
        self._inside = inside_of(broker)
        self._in_loop = in_loop
        self._interception = Interception(self._inside)
        self.faults = Faults(self._interception, in_loop)

    # What is in it.

    def topics(self) -> dict[str, int]:
        """How many partitions each topic has."""
        topics = self._inside.cluster.topics
        return self._in_loop(lambda: {topic.name: topic.partitions for topic in topics})

    def records(self, topic: str, partition: int | None = None) -> list[Record]:
        """The records of a topic, or of one partition, that a consumer can read now.

        In the order of partitions and offsets; transactions make no difference.

        Raises:
            LookupError: there is no such topic or partition.
        """
        return self._in_loop(lambda: self._records(topic, partition))

    def values(self, topic: str, partition: int | None = None) -> list[bytes | None]:
        """The values of :meth:`records`."""
        return [record.value for record in self.records(topic, partition)]

    def _records(self, topic: str, partition: int | None) -> list[Record]:
        return [record for log in self._logs(topic, partition) for record in records_in(log)]

    def _logs(self, topic: str, partition: int | None) -> list[Log]:
        state = self._inside.nodes[0].state
        known = state.topics.get(topic)
        if known is None:
            names = ", ".join(sorted(each.name for each in state.topics)) or "none"
            raise LookupError(f"there is no topic {topic}; there are: {names}")
        if partition is not None and not 0 <= partition < known.partitions:
            there = counted(known.partitions, "partition")
            raise LookupError(f"{topic} has {there}, and no {partition}")
        wanted = range(known.partitions) if partition is None else [partition]
        logs = (state.get_log(topic, index) for index in wanted)
        return [log for log in logs if log is not None]

    def group(self, id: str) -> GroupView:
        """A consumer group as it is now: its state, its members, its offsets."""
        return self._in_loop(lambda: group_view(self._inside, id))

    def groups(self) -> list[str]:
        """The names of all consumer groups."""
        coordinators = self._inside.coordinators()
        return self._in_loop(lambda: sorted(id for each in coordinators for id in each.groups))

    def connections(self) -> list[ConnectionView]:
        """The connections that are open now."""
        return self._in_loop(
            lambda: [
                _connection(node, channel.id, channel.attachment, str(channel.principal))
                for node in self._inside.nodes
                for _, channel in node.channels()
            ]
        )

    # What came.

    def requests(
        self,
        apis: Apis = None,
        *,
        topic: str | None = None,
        group: str | None = None,
        client_id: str | None = None,
        connection: str | None = None,
        node: int | None = None,
    ) -> list[SeenRequest]:
        """The requests that came, the oldest first; the last 10,000, of 64 MiB in all.

        Args:
            apis: one API or several, by name or number; None for all.
            topic: only about this topic.
            group: only about this consumer group.
            client_id: only of the client that calls itself so.
            connection: only on the connection with this id.
            node: only to the broker with this ``node.id``.

        Raises:
            ValueError: there is no such API.
        """
        which = Which(
            api_keys=api_keys_of(apis),
            topic=topic,
            group=group,
            client_id=client_id,
            connection=connection,
            node=node,
        )
        return [request for request in self._interception.seen if which.matches(request)]

    def forget_requests(self) -> None:
        """Begin anew with :meth:`requests`."""
        self._in_loop(self._interception.seen.clear)

    def log(self, *, since_ms: int = 0) -> str:
        """The last requests and what became of them, and what the broker has logged; in lines.

        Also when the broker has ended.

        Args:
            since_ms: only what came then or later, in ms since the epoch.
        """
        # A time in ms that was divided by 1000 may come back a little less.
        lines = [line for line in self._log_lines() if round(line[0] * 1000, 3) >= since_ms]
        lines.sort(key=itemgetter(0))
        return "\n".join(line for _, line in lines[-LOG_LINES_MAX:])

    def _log_lines(self) -> list[tuple[float, str]]:
        """Lines, each with its time in seconds since the epoch."""
        seen = self._interception.seen
        return [(request.time_ms / 1000, request.as_line()) for request in seen]

    # What happens at once.

    def expire_members(self, group: str, member_ids: Iterable[str] | None = None) -> None:
        """Take members of a group, or all, for silent since their session timeout.

        Raises:
            LookupError: there is no such group.
        """
        ids = None if member_ids is None else list(member_ids)

        def expire() -> None:
            groups = self._inside.groups_of(group)
            if groups is None:
                raise LookupError(f"there is no group {group}")
            groups.expire_members(group, ids)

        self._in_loop(expire)

    # What is waited for.

    def _enough_records(
        self, topic: str, count: int, partition: int | None
    ) -> Awaited[list[Record]]:
        looked_at: list[tuple[Log, int]] = []

        def logs() -> list[Log]:
            known = self._inside.cluster.topics.get(topic)
            return self._logs(topic, partition) if known is not None else []

        def there_are() -> list[Record]:
            return [record for log in logs() for record in records_in(log)]

        def poll() -> list[Record] | None:
            nonlocal looked_at
            # Decoding takes its time: only what may be enough is decoded, and only once.
            if count > sum(log.high_watermark - log.start_offset for log in logs()):
                return None
            are_at = [(log, log.high_watermark) for log in logs()]
            if are_at and are_at == looked_at:
                return None
            looked_at = are_at
            found = there_are()
            return found if len(found) >= count else None

        return Awaited(
            f"{counted(count, 'record')} in {topic}", poll, lambda: f"there are {len(there_are())}"
        )

    def _enough_requests(
        self, apis: Apis, count: int, topic: str | None
    ) -> Awaited[list[SeenRequest]]:
        which = Which(api_keys=api_keys_of(apis), topic=topic)
        found: list[SeenRequest] = []
        beginning = looked_at = self._interception.seen.beginning

        def poll() -> list[SeenRequest] | None:
            nonlocal beginning, looked_at
            seen = self._interception.seen
            if beginning != seen.beginning:  # they were forgotten meanwhile
                beginning = seen.beginning
                found.clear()
            found.extend(each for each in seen.since(looked_at) if which.matches(each))
            looked_at = seen.total
            return found if len(found) >= count else None

        return Awaited(
            f"{counted(count, 'request')} {apis or 'of any API'}",
            poll,
            lambda: f"there were {len(found)}",
        )

    def _group_in_state(self, id: str, state: str, members: int | None) -> Awaited[GroupView]:
        def poll() -> GroupView | None:
            found = group_view(self._inside, id)
            is_there = found.state == state and members in (None, len(found.members))
            return found if is_there else None

        with_members = "" if members is None else f" with {counted(members, 'member')}"
        return Awaited(
            f"group {id} in state {state}{with_members}",
            poll,
            lambda: f"it is {group_view(self._inside, id)}",
        )

    def _committed(self, id: str, topic: str, partition: int, offset: int) -> Awaited[GroupView]:
        def poll() -> GroupView | None:
            found = group_view(self._inside, id)
            return found if found.offsets.get((topic, partition), -1) >= offset else None

        return Awaited(
            f"offset {offset} of {topic}-{partition} committed by group {id}",
            poll,
            lambda: f"committed are {group_view(self._inside, id).offsets}",
        )


def _connection(
    node: NodeInside, id: str, connection: Connection, principal: str
) -> ConnectionView:
    return ConnectionView(
        id, node.id, connection.peer, connection.client_software, principal, connection.requests
    )
