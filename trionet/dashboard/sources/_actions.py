"""The operations of the dashboard, each of which returns a sentence about its result.

The operations are ordinary client requests, which the cluster authorizes. The user interface asks
for confirmation first. The client and the network are imported when an operation needs them,
because the import takes longer than drawing the first frame.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from ...errors import TrionetError
from ..model._about import CLIENT_ID

if TYPE_CHECKING:
    from ...client._topic_partition import TopicPartition
    from ...client.admin import Admin, OffsetSpec
    from ...net._network import Network

CloseConnection = Callable[[str], Awaitable[bool]]
"""``async (connection id) -> whether the connection existed``."""

Order = Callable[[str, Mapping[str, str]], Awaitable[None]]
"""``async (path, parameters) -> None``: has the broker do something, or raises TrionetError."""


class ActionError(TrionetError):
    """Raised when an action is impossible. The message gives the reason and any alternative."""


class Actions:
    """The operations on one cluster.

    Args:
        bootstrap_servers: the bootstrap servers of the cluster.
        settings: the client settings, keyed by Kafka's names, including TLS and SASL.
        close: closes a connection of the broker; None if this is not possible.
        order: has the broker do something else; None if this is not possible.
        network: opens the connections; None for those of the system.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        settings: Mapping[str, object] | None = None,
        *,
        close: CloseConnection | None = None,
        order: Order | None = None,
        network: Network | None = None,
    ) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._settings = {"client.id": f"{CLIENT_ID}-actions", **(settings or {})}
        self._close = close
        self._order = order
        self._network = network

    # Topics.

    async def create_topic(
        self,
        name: str,
        partitions: int | None = None,
        replicas: int | None = None,
    ) -> str:
        """Create a topic.

        Args:
            name: the name of the topic.
            partitions: the number of partitions; None for the broker's default.
            replicas: the replication factor; None for the broker's default.

        Raises:
            TrionetError: the topic was not created.
        """
        from ...client.admin import NewTopic

        topic = NewTopic(
            name,
            -1 if partitions is None else partitions,
            -1 if replicas is None else replicas,
        )
        async with self._admin() as admin:
            made = (await admin.create_topics([topic])).checked()[name]
        count = f" with {made.partitions} partitions" if made.partitions > 0 else ""
        return f"created topic {name}{count}"

    async def delete_topic(self, name: str) -> str:
        """Delete a topic and all its records.

        Raises:
            TrionetError: the topic was not deleted.
        """
        async with self._admin() as admin:
            (await admin.delete_topics([name])).checked()
        return f"deleted topic {name}"

    async def add_partitions(self, name: str, total: int) -> str:
        """Increase the number of partitions of a topic. Keys may then map to other partitions.

        Raises:
            TrionetError: nothing was changed.
        """
        async with self._admin() as admin:
            (await admin.create_partitions({name: total})).checked()
        return f"topic {name} now has {total} partitions"

    async def alter_config(self, kind: str, name: str, key: str, value: str | None) -> str:
        """Change a config of a topic or a broker.

        Args:
            kind: ``topic`` or ``broker``.
            name: the name of the topic, or the id of the broker.
            key: the name of the config.
            value: the new value; None to reset the config to its default.

        Raises:
            TrionetError: nothing was changed.
        """
        from ...client.admin import ConfigResource, ConfigResourceType

        resource = ConfigResource(ConfigResourceType[kind.upper()], name)
        async with self._admin() as admin:
            (await admin.incremental_alter_configs({resource: {key: value}})).checked()
        shown = "reset to its default" if value is None else f"set to {value}"
        return f"{kind} {name}: {key} {shown}"

    # Groups.

    async def reset_group(self, group: str, topic: str | None, to: str) -> str:
        """Reset the committed offsets of a group without members.

        Args:
            group: the name of the group.
            topic: a topic for which the group has committed offsets; None for all such topics.
            to: ``start``, ``end``, an offset, or a number of records forward (``+10``) or back
                (``-10``), clamped to the range of existing offsets.

        Raises:
            TrionetError: some or all offsets were not committed.
        """
        from ...client.admin import OffsetSpec

        check_reset_position(to)
        async with self._admin() as admin:
            committed = (await admin.list_group_offsets([group])).checked()[group].checked()
            current = {
                partition: found.offset
                for partition, found in committed.items()
                if found is not None and topic in (None, partition.topic)
            }
            if not current:
                where = "" if topic is None else f" of topic {topic}"
                raise ActionError(f"group {group} has no committed offsets{where}")
            ends = await _offsets(admin, current, OffsetSpec.LATEST)
            starts = await _offsets(admin, current, OffsetSpec.EARLIEST)
            new_offsets = {
                partition: _moved(to, offset, starts[partition], ends[partition])
                for partition, offset in current.items()
            }
            (await admin.alter_group_offsets(group, new_offsets)).checked()
        return f"reset group {group} in {len(new_offsets)} partitions"

    async def delete_group(self, group: str) -> str:
        """Delete a group without members, including its committed offsets.

        Raises:
            TrionetError: the group was not deleted.
        """
        async with self._admin() as admin:
            (await admin.delete_groups([group])).checked()
        return f"deleted group {group}"

    # Connections and records.

    async def close_connection(self, id: str) -> str:
        """Close a connection of the broker, even while a request is in progress.

        Raises:
            ActionError: the connection is already closed, or connections cannot be closed here.
            TrionetError, OSError: the broker could not be reached.
        """
        if self._close is None:
            raise ActionError(
                "to close connections, run the dashboard in the broker's process, or connect to its"
                " metrics listener with a token: --metrics URL --metrics-token-file FILE"
            )
        if not await self._close(id):
            raise ActionError(f"connection {id} is already closed")
        return f"closed connection {id}"

    async def inject_fault(self, **words: str) -> str:
        """Inject a fault into a broker under test.

        Args:
            words: the fault and the requests that it applies to, in words.

        Raises:
            TrionetError: a word is not allowed, or the broker is not under test.
            OSError: the broker could not be reached.
        """
        await self._do("/faults/inject", words)
        return f"injected {words['fault']}"

    async def remove_fault(self, number: int) -> str:
        """Remove a fault from a broker under test, which proceeds with what the fault holds.

        Raises:
            TrionetError: there is no such fault, or the broker is not under test.
            OSError: the broker could not be reached.
        """
        await self._do("/faults/remove", {"number": str(number)})
        return f"removed fault {number}"

    async def _do(self, path: str, parameters: Mapping[str, str]) -> None:
        if self._order is None:
            raise ActionError(
                "to change a broker from here, run the dashboard in its process or as its user on"
                " its machine, or connect to its metrics listener with a token: --metrics URL"
                " --metrics-token-file FILE"
            )
        await self._order(path, parameters)

    async def produce(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
    ) -> str:
        """Produce one record.

        Args:
            topic: an existing topic.
            value: the value of the record; None for a tombstone.
            key: the key of the record.

        Raises:
            TrionetError: the record was not written, or the outcome is unknown.
        """
        from ...client.producer import open_producer
        from ...net._network import SYSTEM

        async with self._admin() as admin:
            # A producer would let the broker create the topic, so a typo would leave one behind.
            (await admin.describe_topics([topic])).checked()
        async with open_producer(
            self._bootstrap_servers, self._settings, network=self._network or SYSTEM
        ) as producer:
            written = await producer.send(topic, value, key=key)
        return f"wrote {topic} partition {written.partition} offset {written.offset}"

    @asynccontextmanager
    async def _admin(self) -> AsyncIterator[Admin]:
        from ...client.admin import open_admin
        from ...net._network import SYSTEM

        async with open_admin(
            self._bootstrap_servers, self._settings, network=self._network or SYSTEM
        ) as admin:
            yield admin


def check_reset_position(to: str) -> None:
    """Validate the position given for a reset.

    Raises:
        ActionError: the position is invalid.
    """
    if to in ("start", "end"):
        return
    if not to.lstrip("+-").isdecimal() or len(to) - len(to.lstrip("+-")) > 1:
        raise ActionError(f"invalid position {to!r}: use start, end, an offset, +N or -N")


def _moved(to: str, offset: int, start: int, end: int) -> int:
    if to == "start":
        return start
    if to == "end":
        return end
    position = offset + int(to) if to[0] in "+-" else int(to)
    return min(max(position, start), end)


async def _offsets(
    admin: Admin, partitions: Mapping[TopicPartition, Any], spec: OffsetSpec
) -> dict[TopicPartition, int]:
    found = (await admin.list_offsets(dict.fromkeys(partitions, spec))).checked()
    offsets = {}
    for partition, listed in found.items():
        if listed.offset is None:
            raise ActionError(f"{partition} has no offset to reset to")
        offsets[partition] = listed.offset
    return offsets
