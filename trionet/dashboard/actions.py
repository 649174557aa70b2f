"""What the dashboard can do: each action says in a sentence what it has done, or raises.

Who may do what is up to the cluster: these are requests as any client makes them. Whoever calls has
asked before.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from ..errors import TrionetError
from ..net.network import SYSTEM, Network

if TYPE_CHECKING:
    from ..client.admin import Admin, OffsetSpec
    from ..client.topic_partition import TopicPartition

CloseConnection = Callable[[str], Awaitable[bool]]
"""``async (connection id) -> whether it was there``."""


class ActionError(TrionetError):
    """An action cannot be done; the message says why, and what can."""


class Actions:
    """What can be done at one cluster.

    Args:
        bootstrap_servers: of the cluster.
        settings: of the clients, by Kafka's keys, such as those of TLS and SASL.
        close: closes a connection of the broker; None where nothing can.
        network: where connections come from.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        settings: Mapping[str, object] | None = None,
        *,
        close: CloseConnection | None = None,
        network: Network = SYSTEM,
    ) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._settings = dict(settings or {})
        self._close = close
        self._network = network

    @property
    def can_close(self) -> bool:
        """Whether connections can be closed."""
        return self._close is not None

    # Topics.

    async def create_topic(
        self,
        name: str,
        partitions: int | None = None,
        replicas: int | None = None,
        configs: Mapping[str, str] | None = None,
    ) -> str:
        """Make a topic.

        Args:
            name: of the topic.
            partitions: how many; None for the broker's default.
            replicas: of each partition; None for the broker's default.
            configs: settings of the topic.

        Raises:
            TrionetError: it was not made.
        """
        from ..client.admin import NewTopic

        topic = NewTopic(
            name,
            -1 if partitions is None else partitions,
            -1 if replicas is None else replicas,
            configs or {},
        )
        async with self._admin() as admin:
            made = (await admin.create_topics([topic])).checked()[name]
        count = f" with {made.partitions} partitions" if made.partitions > 0 else ""
        return f"created topic {name}{count}"

    async def delete_topic(self, name: str) -> str:
        """Delete a topic and all its records.

        Raises:
            TrionetError: it was not deleted.
        """
        async with self._admin() as admin:
            (await admin.delete_topics([name])).checked()
        return f"deleted topic {name}"

    async def add_partitions(self, name: str, total: int) -> str:
        """Give a topic more partitions; records with keys go to other ones then.

        Raises:
            TrionetError: nothing was changed.
        """
        async with self._admin() as admin:
            (await admin.create_partitions({name: total})).checked()
        return f"topic {name} has {total} partitions now"

    async def alter_config(self, kind: str, name: str, key: str, value: str | None) -> str:
        """Change a setting.

        Args:
            kind: ``topic`` or ``broker``.
            name: of the topic, or the broker's id.
            key: of the setting.
            value: None for the default again.

        Raises:
            TrionetError: nothing was changed.
        """
        from ..client.admin import ConfigResource, ConfigResourceType

        resource = ConfigResource(ConfigResourceType[kind.upper()], name)
        async with self._admin() as admin:
            (await admin.incremental_alter_configs({resource: {key: value}})).checked()
        shown = "its default again" if value is None else value
        return f"{kind} {name}: {key} is {shown}"

    # Groups.

    async def reset_group(self, group: str, topic: str | None, to: str) -> str:
        """Have a group without members go on elsewhere.

        Args:
            group: its name.
            topic: one of those that it has committed offsets of; None for all of them.
            to: ``start``, ``end``, an offset, or how many records forward (``+10``) or back
                (``-10``); never before the first record or behind the end.

        Raises:
            TrionetError: nothing, or not everything, was committed.
        """
        from ..client.admin import OffsetSpec

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
                raise ActionError(f"group {group} has committed no offsets{where}")
            ends = await _offsets(admin, current, OffsetSpec.LATEST)
            starts = await _offsets(admin, current, OffsetSpec.EARLIEST)
            wanted = {
                partition: _moved(to, offset, starts[partition], ends[partition])
                for partition, offset in current.items()
            }
            (await admin.alter_group_offsets(group, wanted)).checked()
        return f"group {group} goes on elsewhere in {len(wanted)} partitions"

    async def delete_group(self, group: str) -> str:
        """Delete a group without members, and its offsets.

        Raises:
            TrionetError: it was not deleted.
        """
        async with self._admin() as admin:
            (await admin.delete_groups([group])).checked()
        return f"deleted group {group}"

    # Connections and records.

    async def close_connection(self, id: str) -> str:
        """Close a connection of the broker, whatever it is doing.

        Raises:
            ActionError: it has ended, or connections cannot be closed here.
            TrionetError, OSError: the broker could not be asked.
        """
        if self._close is None:
            raise ActionError(
                "connections can be closed in the broker's own process, or by its metrics"
                " listener with a token: --metrics URL --metrics-token-file FILE"
            )
        if not await self._close(id):
            raise ActionError(f"connection {id} has ended already")
        return f"closed connection {id}"

    async def produce(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        partition: int | None = None,
    ) -> str:
        """Produce one record.

        Args:
            topic: where to; it has to be there.
            value: None for a tombstone.
            key: of the record.
            partition: None lets the key decide.

        Raises:
            TrionetError: it was not written, or that is not known.
        """
        from ..client.producer import open_producer

        async with self._admin() as admin:
            # A producer would have the broker make the topic, and a slip would stay.
            (await admin.describe_topics([topic])).checked()
        async with open_producer(
            self._bootstrap_servers, self._settings, network=self._network
        ) as producer:
            written = await producer.send(topic, value, key=key, partition=partition)
        return f"wrote {topic} partition {written.partition} offset {written.offset}"

    @asynccontextmanager
    async def _admin(self) -> AsyncIterator[Admin]:
        # Not above: loading the client takes longer than drawing the first frame.
        from ..client.admin import open_admin

        async with open_admin(
            self._bootstrap_servers, self._settings, network=self._network
        ) as admin:
            yield admin


def check_reset_position(to: str) -> None:
    """See that a place to go on from is one.

    Raises:
        ActionError: it is none; says which there are.
    """
    if to in ("start", "end"):
        return
    if not to.lstrip("+-").isdecimal() or len(to) - len(to.lstrip("+-")) > 1:
        raise ActionError(f"{to!r} is no place; allowed: start, end, an offset, +N or -N records")


def _moved(to: str, offset: int, start: int, end: int) -> int:
    if to == "start":
        return start
    if to == "end":
        return end
    wanted = offset + int(to) if to[0] in "+-" else int(to)
    return min(max(wanted, start), end)


async def _offsets(
    admin: Admin, partitions: Mapping[TopicPartition, Any], spec: OffsetSpec
) -> dict[TopicPartition, int]:
    found = (await admin.list_offsets(dict.fromkeys(partitions, spec))).checked()
    offsets = {}
    for partition, listed in found.items():
        if listed.offset is None:
            raise ActionError(f"{partition} has no offset to go on from")
        offsets[partition] = listed.offset
    return offsets
