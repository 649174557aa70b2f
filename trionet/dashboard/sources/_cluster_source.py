"""A source that reads any Kafka cluster over the Kafka protocol."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import attrs
import trio

from ...client.admin._calls import Calls, admin_settings, open_calls
from ...client.admin._cluster import ClusterCalls
from ...client.network._open_client import REFUSED_SECONDS
from ...errors import TrionetError, UnsupportedVersionError
from ...net._network import SYSTEM, Network
from ..model._about import CLIENT_ID
from ..model._model import REACHABILITY, Model
from ..model._rows import BrokerRow, ConfigRow, QuotaRow
from ._group_reader import GroupReader
from ._source import INTERVAL_SECONDS, SHARE, Pace, Started, start_in
from ._topic_reader import TopicReader
from ._transaction_reader import TransactionReader

if TYPE_CHECKING:
    from ...client.admin._access import QuotaEntity
    from ...client.network._kafka_client import KafkaClient

#: The interval between reads of data that is not shown, in refresh intervals and in seconds. The
#: shorter one applies.
RARELY: Final = 10
RARELY_SECONDS: Final = 10.0
#: How often to check whether a broker can be reached, in seconds; a first response takes less.
CHECK_SECONDS: Final = 1.0
#: The number of refresh intervals without a response after which one is missed.
SILENT_INTERVALS: Final = 3
#: The maximum number of groups whose lag is also read, and recorded, while groups are not shown.
SUMMED_GROUPS_MAX: Final = 200
_OVERVIEW: Final = "overview"
_TOPICS: Final = ("topics", "partitions")
_GROUPS: Final = ("groups", "group")
_OTHERS: Final = ("brokers", "configs", "quotas")
_FOCUSED: Final = (_OVERVIEW, *_TOPICS, *_GROUPS, "transactions", *_OTHERS)
#: The figures computed from each list.
_OF_TOPICS: Final = ("topics", "partitions", "under_replicated", "leaderless", "records")
_OF_GROUPS: Final = ("groups", "lag")
_OF_CLUSTER: Final = ("brokers",)

Read = Callable[[str | None, object, bool, Pace], Awaitable[bool]]
"""``async (section, key, is due, pace) -> has read``: reads the shown data, or all data if due."""

# An unreachable broker should be noticed soon; the next read retries anyway.
_CALL_MS: Final[Mapping[str, object]] = {
    "request.timeout.ms": 10_000,
    "default.api.timeout.ms": 10_000,
}


class ClusterSource:
    """A :class:`.Part` that reads a cluster over the Kafka protocol.

    Args:
        bootstrap_servers: the bootstrap servers of the cluster.
        settings: the client settings, keyed by Kafka's names.
        network: opens the connections.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        settings: Mapping[str, object] | None = None,
        *,
        network: Network = SYSTEM,
    ) -> None:
        self.interval_seconds = INTERVAL_SECONDS
        self._bootstrap_servers = bootstrap_servers
        self._settings = dict(settings or {})
        self._network = network
        self._section: str | None = None
        self._key: object = None
        self._wake = trio.Event()

    def focus(self, section: str | None, key: object = None) -> None:
        """Select the data to show; see :meth:`.Source.focus`."""
        if (section, key) != (self._section, self._key):
            self._section, self._key = section, key
            wake, self._wake = self._wake, trio.Event()
            wake.set()

    async def run(self, model: Model, *, task_status: Started = trio.TASK_STATUS_IGNORED) -> None:
        """Update the model until cancelled; see :class:`.Source`."""
        settings = {"client.id": CLIENT_ID, **self._settings}
        if not _CALL_MS.keys() & settings.keys():
            settings |= _CALL_MS
        async with open_calls(
            self._bootstrap_servers, admin_settings(settings, {}), network=self._network
        ) as calls:
            reads = _Reads(calls, model)
            # Concurrently, so that a slow read delays no other.
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._watch_connections, calls.client, model)
                async with trio.open_nursery() as starting:
                    for read in (reads.topics, reads.groups, reads.transactions, reads.others):
                        starting.start_soon(start_in, nursery, self._repeat, read, model)
                task_status.started()

    async def _watch_connections(self, client: KafkaClient, model: Model) -> None:
        """Report within seconds that no broker can be reached; a read takes until it times out.

        The client goes on trying, since a broker that restarts is back soon.
        """
        began = trio.current_time()
        while True:
            await trio.sleep(CHECK_SECONDS)
            refusal = why = ""
            if self._is_silent(model):
                refusal = client.connection_refusal()
                why = refusal or client.connection_problem()
            # A broker that is started beside the dashboard has as long as with commands.
            seconds = trio.current_time() - (model.responded_at or began)
            is_refused = bool(refusal) and seconds >= REFUSED_SECONDS
            if (why or None, is_refused) != (model.unreachable, model.is_refused):
                model.unreachable, model.is_refused = why or None, is_refused
                alarm = f"{why}; trying again every second" if why else None
                model.set_alarm(REACHABILITY, alarm, model.responded_at or began)
                model.changed()

    def _is_silent(self, model: Model) -> bool:
        if model.responded_at is None:
            return True
        seconds = max(CHECK_SECONDS, SILENT_INTERVALS * self.interval_seconds)
        return trio.current_time() - model.responded_at > seconds

    async def _repeat(
        self, read: Read, model: Model, *, task_status: trio.TaskStatus[None]
    ) -> None:
        due_at = -math.inf
        is_started = False
        while True:
            began = trio.current_time()
            wake = self._wake
            pace = Pace(SHARE, _unless(wake))
            is_due = began >= due_at
            if is_due:
                due_at = began + min((RARELY - 0.5) * self.interval_seconds, RARELY_SECONDS)
            if await read(self._section, self._key, is_due, pace):
                model.changed()
            if not is_started:
                is_started = True
                task_status.started()
            with trio.move_on_at(began + self.interval_seconds):
                await wake.wait()


def _unless(event: trio.Event) -> Callable[[], bool]:
    return lambda: not event.is_set()


class _Reads:
    """The reads of the cluster: shown data in every round, and other data when it is due."""

    def __init__(self, calls: Calls, model: Model) -> None:
        self._calls = calls
        self._model = model
        self._topics = TopicReader(model)
        self._groups = GroupReader(model, self._topics.partition)
        self._transactions = TransactionReader(model, self._topics.rows)
        self._began = trio.current_time()
        self._succeeded_at: dict[str, float] = {}

    async def topics(self, section: str | None, key: object, is_due: bool, pace: Pace) -> bool:
        await trio.lowlevel.checkpoint()
        topics, model = self._topics, self._model
        shown = key if section == "partitions" and isinstance(key, str) else None
        is_shown = section in _TOPICS or self._is_in_overview(section)
        if not topics.is_recorded and (not is_shown or shown != topics.shown):
            await topics.forget_rates()
        if not is_due and not is_shown:
            return False
        if shown != topics.shown:
            topics.show(shown)
        async with self._recording(
            "topics", _OF_TOPICS, model.topics.mark_failed, model.partitions.mark_failed
        ):
            await topics.read(self._calls)
        topics.was_read.set()
        if model.topics.failure is not None:
            await topics.forget_rates()
        elif is_shown or topics.is_recorded:
            if not topics.is_recorded:
                pace = self._pace_in(section, pace)
            await topics.read_numbers(self._calls, pace)
        return True

    def _is_in_overview(self, section: str | None) -> bool:
        """Return whether topics and groups are in the overview, in place of a broker's inside."""
        return section == _OVERVIEW and not self._model.has_internals

    def _pace_in(self, section: str | None, pace: Pace) -> Pace:
        """Return a pace that ends a read for the overview once that shows a broker's inside."""
        if section != _OVERVIEW:
            return pace
        return pace.only_while(lambda: not self._model.has_internals)

    async def groups(self, section: str | None, key: object, is_due: bool, pace: Pace) -> bool:
        await trio.lowlevel.checkpoint()
        is_in_overview = self._is_in_overview(section)
        if not is_due and not is_in_overview and section not in _GROUPS:
            return False
        groups, model = self._groups, self._model
        async with self._recording("groups", _OF_GROUPS, model.groups.mark_failed):
            await groups.read(self._calls)
            is_small = len(model.groups) <= SUMMED_GROUPS_MAX
            if section == "groups" or is_in_overview or (is_due and is_small):
                await self._topics.was_read.wait()  # for the leaders of partitions
                if not is_small:
                    pace = self._pace_in(section, pace)
                await groups.read_all_details(self._calls, pace)
                return True
            if not is_small:
                model.figures.forget("lag")  # not read from now on, so it would become outdated
            if section == "group" and isinstance(key, str):
                await self._topics.was_read.wait()
                await groups.read_details(self._calls, [key], pace)
        return True

    async def transactions(self, section: str | None, _: object, __: bool, pace: Pace) -> bool:
        await trio.lowlevel.checkpoint()
        model = self._model
        if section != "transactions":
            model.set_alarm("transactions", None)
            return False
        await self._topics.was_read.wait()  # for the leaders of partitions
        async with self._recording("transactions", (), model.transactions.mark_failed):
            try:
                await self._transactions.read(self._calls, pace)
            except UnsupportedVersionError:
                model.transactions.mark_missing(
                    "this cluster does not list transactions (ListTransactions, since Kafka 3.0)"
                )
        return True

    async def others(self, section: str | None, key: object, is_due: bool, pace: Pace) -> bool:
        model = self._model
        if isinstance(key, tuple) and section == "configs" and key != model.configs_of:
            model.select_configs(key)
            self._model.changed()
        await self._topics.was_read.wait()
        # If nothing else is read regularly, this read notices when the cluster is unreachable.
        is_alone = section not in _FOCUSED and not model.has_internals
        if is_due or section == "brokers" or is_alone:
            async with self._recording("cluster", _OF_CLUSTER, model.brokers.mark_failed):
                if is_due or section == "brokers":
                    await self._brokers()
                else:
                    await ClusterCalls(self._calls).describe()
        if section == "configs":
            async with self._recording("configs", (), model.configs.mark_failed):
                try:
                    await self._configs(key)
                except (TrionetError, OSError):
                    if pace.is_needed():  # otherwise other configs are shown by now
                        raise
        else:
            model.set_alarm("configs", None)
        if section == "quotas":
            await self._quotas()
        return is_due or is_alone or section in _OTHERS

    @asynccontextmanager
    async def _recording(
        self, what: str, figures: Sequence[str], *mark_failed: Callable[[str], None]
    ) -> AsyncIterator[None]:
        """Record in the model whether the read in the block succeeds, suppressing its errors.

        Args:
            what: the subject of the read.
            figures: the figures that become unknown if the read fails.
            mark_failed: called with the reason if the read fails.
        """
        try:
            yield
        except (TrionetError, OSError) as error:
            for mark in mark_failed:
                mark(f"{error}")
            self._model.mark_cluster_failed(figures)
            since = self._succeeded_at.get(what, self._began)
            self._model.set_alarm(what, f"{what} could not be read: {error}", since)
        else:
            self._succeeded_at[what] = self._model.responded_at = trio.current_time()
            self._model.set_alarm(what, None)

    async def _brokers(self) -> None:
        cluster = await ClusterCalls(self._calls).describe()
        leads: dict[int, int] = {}
        sizes: dict[int, int] = {}
        for row in self._topics.rows():
            leads[row.leader] = leads.get(row.leader, 0) + 1
            if row.bytes is not None:
                sizes[row.leader] = sizes.get(row.leader, 0) + row.bytes
        controller = None if cluster.controller is None else cluster.controller.id
        rows = {
            id: BrokerRow(
                id,
                node.host,
                node.port,
                node.rack,
                id == controller,
                leads.get(id, 0) if self._topics.has_all else None,
                sizes.get(id),
            )
            for id, node in sorted(cluster.brokers.items())
        }
        now, model = trio.current_time(), self._model
        model.brokers.replace(rows, now)
        model.figures.put("brokers", now, len(rows))
        model.about = attrs.evolve(
            model.about, cluster_id=cluster.id or model.about.cluster_id, controller=controller
        )

    async def _configs(self, key: object) -> None:
        assert isinstance(key, tuple)
        kind, name = key
        # Imported here, as quotas are below, to reach the first frame sooner.
        from ...client.admin._configs import ConfigCalls, ConfigResource, ConfigResourceType

        resource = ConfigResource(ConfigResourceType[kind.upper()], name)
        entries = (await ConfigCalls(self._calls).describe([resource])).checked()[resource]
        rows = {
            entry.name: ConfigRow(
                entry.name,
                entry.value,
                entry.source.name.lower().replace("_", " "),
                entry.is_default,
                entry.is_read_only,
                entry.is_sensitive,
            )
            for entry in sorted(entries.values(), key=lambda entry: entry.name)
        }
        self._model.configs.replace(rows, trio.current_time())

    async def _quotas(self) -> None:
        from ...client.admin._access import QuotaCalls

        await trio.lowlevel.checkpoint()
        rows: dict[tuple[str, str], QuotaRow] | None = None
        missing: str | None = None
        try:
            quotas = await QuotaCalls(self._calls).describe()
        except UnsupportedVersionError:
            missing = "this broker does not support client quotas (DescribeClientQuotas)"
        except (TrionetError, OSError) as error:
            missing = f"client quotas could not be read: {error}"
        else:
            rows = _quota_rows(quotas)
        self._model.update_client_quotas(rows, missing, trio.current_time())


def _quota_rows(
    quotas: Mapping[QuotaEntity, Mapping[str, float]],
) -> dict[tuple[str, str], QuotaRow]:
    rows = {}
    for entity, limits in quotas.items():
        name = ", ".join(f"{kind}={part or '<default>'}" for kind, part in entity.parts)
        for key, limit in limits.items():
            rows[name, key] = QuotaRow(name, key, limit)
    return rows
