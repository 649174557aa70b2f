"""The source for a Jafka broker: everything comes from its metrics listener, its topics as well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from ...errors import TrionetError
from ..model._model import Model
from ..model._snapshot import MALFORMED, BrokerSnapshot
from ._http_client import HttpClient
from ._network_source import MetricsListenerReader, NetworkSource

if TYPE_CHECKING:
    from ..model._rows import TopicRow

#: The reason shown for data that only Kafka's protocol has.
NOT_KAFKA: Final = "not part of Jafka's protocol, which is Kafka 0.7's"
#: The lists of its ``/snapshot``, by the section of the model that is shown.
_LISTS: Final = {
    "overview": "connections",
    "connections": "connections",
    "requests": "connections",
    "closed": "recently_closed",
    "log": "log",
    "tasks": "tasks",
}

#: How long the dashboard waits before it starts as that of a Kafka broker.
_SECONDS_MAX: Final = 2.0


class _Reader(MetricsListenerReader):
    """Keeps the last snapshot, which contains the topics."""

    def __init__(self, client: HttpClient) -> None:
        super().__init__(client)
        self.last: BrokerSnapshot | None = None

    async def take(self) -> BrokerSnapshot:
        self.last = await super().take()
        return self.last


class JafkaSource(NetworkSource):
    """A :class:`.Part` that reads the snapshots of a Jafka broker, and its topics in them.

    Args:
        client: the client for its metrics listener.
        what: the name of the broker in messages.
        via: how the broker is read, for the header.
    """

    def __init__(self, client: HttpClient, what: str, via: str) -> None:
        self._topics_reader = _Reader(client)
        super().__init__(self._topics_reader, what, _LISTS, via=via)

    async def _read(self, model: Model) -> str | None:
        problem = await super()._read(model)
        snapshot = self._topics_reader.last
        rows = snapshot.about["topics"] if snapshot is not None else {}
        topics = {name: _row(name, sizes) for name, sizes in rows.items()}
        model.topics.replace(topics, trio.current_time())
        return problem


def _row(name: str, sizes: list[int]) -> TopicRow:
    from ..model._rows import TopicRow

    return TopicRow(name, "", False, len(sizes), 1, 0, 0, bytes=sum(sizes))


def without_kafka(model: Model) -> None:
    """Mark what a Jafka broker does not have."""
    for section in (model.partitions, model.brokers, model.configs, model.groups, model.tail):
        section.mark_missing(NOT_KAFKA)
    for more in (model.transactions, model.fetch_sessions, model.pipeline, model.faults):
        more.mark_missing(NOT_KAFKA)
    model.client_quotas_missing = NOT_KAFKA


async def is_jafka(client: HttpClient) -> bool:
    """Return whether a metrics listener is that of a Jafka broker; False if it cannot be read."""
    with trio.move_on_after(_SECONDS_MAX):
        try:
            snapshot = await MetricsListenerReader(client).take()
        except (TrionetError, OSError, trio.BrokenResourceError, *MALFORMED):
            return False
        return snapshot.about.get("protocol") == "jafka"
    return False
