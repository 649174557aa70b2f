"""The operations on a broker under test.

:class:`Controls` has the methods that do not wait. The methods that wait have the same names for
trio tests and for blocking tests: they are coroutines in :class:`BrokerControl`, whose broker runs
in the test's own loop, and blocking methods in :class:`~trionet.testing.ThreadedBroker`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from operator import itemgetter

import attrs

from ..broker import Broker
from ..server._connection import Connection
from . import _operations as operations
from ._conditions import Conditions, logs_of
from ._internals import InLoop, NodeInternals, call_directly, internals_of
from ._operations import (
    GroupView,
    TransactionView,
    group_view,
    transaction_views,
)
from ._records import Record, Seed, records_in
from ._seen_requests import SeenRequest, Which, api_keys_of
from .faults._fault_section import FaultSection
from .faults._faults import Apis, Faults
from .faults._interception import Interception

# pytest leaves the frames of this module out of its reports.
__tracebackhide__ = True

# How many lines :meth:`Controls.log` returns at most.
LOG_LINES_MAX = 200


@attrs.frozen
class ConnectionView:
    """A snapshot of an open connection to a broker.

    Attributes:
        id: the connection id, as in :class:`~trionet.testing.SeenRequest` and in faults.
        node: the ``node.id`` of the broker.
        peer: the address and port of the client.
        software: the name and version of the client's software.
        principal: the authenticated principal, such as ``User:ANONYMOUS``.
        requests: the number of requests received on the connection.
    """

    id: str
    node: int
    peer: str
    software: tuple[str, str]
    principal: str
    requests: int


class Controls:
    """The base class for inspecting and controlling a running broker under test.

    Args:
        broker: the broker; its requests are intercepted from now on.
        in_loop: calls a function in the broker's loop.

    Attributes:
        faults: injects faults; see :class:`~trionet.testing.Faults`.
    """

    def __init__(self, broker: Broker, in_loop: InLoop) -> None:
        self._internals = internals_of(broker)
        self._in_loop = in_loop
        self._interception = Interception(self._internals)
        self._conditions = Conditions(self._internals, self._interception.seen)
        self.faults: Faults = Faults(self._interception, in_loop)
        FaultSection(self._interception, in_loop).register()

    # The broker's contents.

    def topics(self) -> dict[str, int]:
        """Return each topic's number of partitions, keyed by topic name."""
        topics = self._internals.cluster.topics
        return self._in_loop(lambda: {topic.name: topic.partitions for topic in topics})

    def records(self, topic: str, partition: int | None = None) -> list[Record]:
        """Return the records that a consumer can read from a topic, or from one partition.

        The records are ordered by partition and offset. Records of open and aborted transactions
        are included.

        Raises:
            LookupError: the topic or partition does not exist.
        """
        return self._in_loop(lambda: self._records(topic, partition))

    def values(self, topic: str, partition: int | None = None) -> list[bytes | None]:
        """Return the values of a topic's records; see :meth:`records`."""
        return [record.value for record in self.records(topic, partition)]

    def _records(self, topic: str, partition: int | None) -> list[Record]:
        logs = logs_of(self._internals, topic, partition)
        return [record for log in logs for record in records_in(log)]

    def group(self, id: str) -> GroupView:
        """Return a consumer group's current state, members and committed offsets."""
        return self._in_loop(lambda: group_view(self._internals, id))

    def groups(self) -> list[str]:
        """Return the ids of all consumer groups, sorted."""
        coordinators = self._internals.coordinators()
        return self._in_loop(lambda: sorted(id for each in coordinators for id in each.groups))

    def transactions(self) -> dict[str, TransactionView]:
        """Return all transactional ids with their current or last transactions, sorted by id."""
        return self._in_loop(lambda: transaction_views(self._internals))

    def connections(self) -> list[ConnectionView]:
        """Return the currently open connections."""
        return self._in_loop(
            lambda: [
                _connection(node, channel.id, channel.attachment, str(channel.principal))
                for node in self._internals.nodes
                for _, channel in node.channels()
            ]
        )

    # The requests it received.

    def requests(
        self,
        apis: Apis = None,
        *,
        topic: str | None = None,
        group: str | None = None,
        transactional_id: str | None = None,
        client_id: str | None = None,
        connection: str | None = None,
        node: int | None = None,
    ) -> list[SeenRequest]:
        """Return the received requests, oldest first.

        Only the most recent requests are kept: at most 10,000, and at most 64 MiB in total.

        Args:
            apis: one API or several, by name or number; None for all.
            topic: only requests about this topic.
            group: only requests about this consumer group.
            transactional_id: only requests about this transactional id.
            client_id: only requests from clients with this id.
            connection: only requests on the connection with this id.
            node: only requests to the broker with this ``node.id``.

        Raises:
            ValueError: an API is unknown.
        """
        which = Which(
            api_keys=api_keys_of(apis),
            topic=topic,
            group=group,
            transactional_id=transactional_id,
            client_id=client_id,
            connection=connection,
            node=node,
        )
        return [request for request in self._interception.seen if which.matches(request)]

    def forget_requests(self) -> None:
        """Discard all recorded requests."""
        self._in_loop(self._interception.seen.clear)

    def log(self, *, since_ms: int = 0) -> str:
        """Return the most recent requests and their outcomes, one per line.

        For a :class:`~trionet.testing.ThreadedBroker`, this includes the broker's log lines. At
        most 200 lines are returned. This method can still be called after the broker has stopped.

        Args:
            since_ms: the earliest time to include, in ms since the epoch.
        """
        # A time in ms that was divided by 1000 and multiplied again may be a little smaller.
        lines = [line for line in self._log_lines() if round(line[0] * 1000, 3) >= since_ms]
        lines.sort(key=itemgetter(0))
        return "\n".join(line for _, line in lines[-LOG_LINES_MAX:])

    def _log_lines(self) -> list[tuple[float, str]]:
        """Return (time, line) pairs; times are in seconds since the epoch."""
        seen = self._interception.seen
        return [(request.time_ms / 1000, request.as_line()) for request in seen]

    # Immediate operations.

    def expire_members(self, group: str, member_ids: Iterable[str] | None = None) -> None:
        """Remove members from a group, as if their session timeouts had expired.

        Args:
            group: the group id.
            member_ids: the ids of the members to expire; None for all members.

        Raises:
            LookupError: the group does not exist.
        """
        ids = None if member_ids is None else list(member_ids)

        def expire() -> None:
            groups = self._internals.groups_of(group)
            if groups is None:
                raise LookupError(f"group {group} does not exist")
            groups.expire_members(group, ids)

        self._in_loop(expire)


def _connection(
    node: NodeInternals, id: str, connection: Connection, principal: str
) -> ConnectionView:
    return ConnectionView(
        id, node.id, connection.peer, connection.client_software, principal, connection.requests
    )


class BrokerControl(Controls):
    """A handle for controlling a broker from a trio program; created by :func:`control`.

    Every async method is a checkpoint. To put a timeout on a wait, use ``trio.fail_after``.

    Attributes:
        broker: the broker under test.
    """

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker, call_directly)
        self.broker = broker

    async def create_topic(
        self, name: str, partitions: int | None = None, **configs: object
    ) -> None:
        """Create a topic.

        Args:
            name: the name of the topic.
            partitions: the number of partitions; None for ``num.partitions``.
            configs: topic configs, with underscores instead of dots.

        Raises:
            ApiError: the topic exists, or an argument is invalid.
        """
        await operations.create_topic(self._internals, name, partitions, configs)

    async def delete_topic(self, name: str) -> None:
        """Delete a topic and its records.

        Raises:
            ApiError: the topic does not exist.
        """
        await operations.delete_topic(self._internals, name)

    async def seed(self, topic: str, records: Iterable[Seed]) -> list[Record]:
        """Append records to a topic, creating it if needed.

        Args:
            topic: the name of the topic.
            records: the records; each is a value, a tuple of a key and a value, or a dict with
                any of ``partition``, ``key``, ``value``, ``headers`` and ``timestamp``, as in a
                line of :meth:`load`, where keys and values may also be JSON. The key determines the
                partition, as in Kafka's own producer; records without a key are distributed
                round-robin.

        Returns:
            The appended records, ordered by partition and offset.

        Raises:
            ApiError: the broker rejected a batch; earlier batches were appended.
            TypeError: a record is invalid; nothing was appended.
            ValueError: a field is invalid, or the partition does not exist; nothing was appended.
        """
        return await operations.seed(self._internals, topic, records)

    async def load(self, path: str | os.PathLike[str]) -> dict[str, list[Record]]:
        """Append the records in a JSON Lines file to their topics; see :meth:`seed`.

        Raises:
            OSError: the file cannot be read.
            ValueError: a line is invalid; nothing was appended.
        """
        return await operations.load(self._internals, path)

    async def apply_retention(self) -> None:
        """Apply retention now, without waiting for ``log.retention.check.interval.ms``."""
        await operations.apply_retention(self._internals)

    async def expire_transactions(self, ids: Iterable[str] | None = None) -> list[str]:
        """Abort ongoing transactions, as if their timeouts had expired.

        Args:
            ids: the transactional ids; None for all.

        Returns:
            The ids whose transactions were ongoing. Producers of the first protocol (TV1) are
            fenced by that; with TV2 they abort and go on. Markers are written, unless they are held
            or cannot be written now.

        Raises:
            LookupError: a transactional id does not exist; nothing was aborted.
        """
        return await operations.expire_transactions(self._internals, ids)

    async def wait_for_records(
        self, topic: str, count: int = 1, *, partition: int | None = None
    ) -> list[Record]:
        """Wait until a topic has at least ``count`` records. Returns the records.

        Args:
            topic: the topic name; the topic need not exist yet.
            count: the minimum number of records, including those of open and aborted transactions.
            partition: the partition whose records are counted; None for all partitions.

        Raises:
            LookupError: the topic exists, but the partition does not.

        Safe to cancel: waiting has no side effects.
        """
        return await operations.wait(
            self._internals, self._conditions.enough_records(topic, count, partition)
        )

    async def wait_for_requests(
        self, apis: Apis = None, count: int = 1, *, topic: str | None = None
    ) -> list[SeenRequest]:
        """Wait until at least ``count`` requests have been received. Returns the requests.

        Args:
            apis: one API or several, by name or number; None for all.
            count: the minimum number of requests.
            topic: the topic that the requests must be about; None for any.

        Raises:
            ValueError: an API is unknown.

        Safe to cancel: waiting has no side effects.
        """
        return await operations.wait(
            self._internals, self._conditions.enough_requests(apis, count, topic)
        )

    async def wait_for_group(
        self, id: str, state: str = "Stable", *, members: int | None = None
    ) -> GroupView:
        """Wait until a group has the given state and number of members. Returns the group.

        Args:
            id: the group id; the group need not exist yet.
            state: the state, by Kafka's name; ``Dead`` if there is no group.
            members: the exact number of members; None for any number.

        Raises:
            ValueError: there is no such state.

        Safe to cancel: waiting has no side effects.
        """
        return await operations.wait(
            self._internals, self._conditions.group_in_state(id, state, members)
        )

    async def wait_for_offset(
        self, group: str, topic: str, offset: int, *, partition: int = 0
    ) -> GroupView:
        """Wait until a group's committed offset is at least ``offset``. Returns the group.

        Args:
            group: the group id; the group need not exist yet.
            topic: the name of the topic.
            offset: the minimum committed offset.
            partition: the partition number.

        Safe to cancel: waiting has no side effects.
        """
        return await operations.wait(
            self._internals, self._conditions.committed(group, topic, partition, offset)
        )

    async def wait_for_transaction(self, id: str, state: str) -> TransactionView:
        """Wait until a transactional id has the given state. Returns the transaction.

        Args:
            id: the transactional id, which need not exist yet.
            state: the state, by Kafka's name; ``Dead`` once the id has expired.

        Raises:
            ValueError: there is no such state.

        Safe to cancel: waiting has no side effects.
        """
        return await operations.wait(
            self._internals, self._conditions.transaction_in_state(id, state)
        )


def control(broker: Broker) -> BrokerControl:
    """Take control of a broker opened with :func:`trionet.open_broker`.

    After this call, the broker's requests are recorded and faults can be injected.

    Raises:
        LocalProtocolError: the broker is already under control; call this function once per broker.
    """
    return BrokerControl(broker)
