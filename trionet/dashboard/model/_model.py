"""The state that the dashboard shows, as rows, rates and histories.

The problem: several sources report overlapping parts of one cluster. A broker's ``/snapshot`` has
the network layer and the internals of groups. The Kafka protocol has topics, groups and quotas.
Each source may be missing, may fail temporarily, and may return after a broker's restart with
another clock and smaller counters. Views need one consistent state at any time.

The choice: one mutable model, without I/O, where time is a parameter. Each source updates a part
with plain calls. Data that two sources report (groups, quotas) is kept per source and merged on
each update, so that either source may fail alone. Absence is explicit: every :class:`.Section`
records whether the rows are missing (the source has none), stale (the last read failed) or
incomplete. :mod:`._rates` computes rates and histories from counters, and drops them when a
counter or the broker's clock goes backwards. :mod:`._figures` bounds histories, and lists are as
long as in the source.

Rejected: immutable snapshots swapped per update (copying 10,000 partitions costs more than drawing
a frame) and a model per source (every view would merge data). Reconsider if views ever run in
another thread, because the model has no locks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from heapq import nlargest
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import attrs

from ._about import About
from ._figures import Figures
from ._group_past import GroupPast
from ._pipeline import Pipeline
from ._rates import BrokerRates
from ._section import Section
from ._snapshot import (
    COUNTS,
    LEVELS,
    MALFORMED,
    BrokerSnapshot,
    counters,
    gauges,
    read_figures,
    reported_about,
)
from ._tail import RECORDS_MAX, TailRow

if TYPE_CHECKING:
    from ...client.consumer import ConsumerRecord
    from ._rows import (
        ApiRow,
        BrokerRow,
        ChannelCounts,
        ClosedRow,
        CloseReasonRow,
        ConfigRow,
        ConnectionRow,
        FaultRow,
        FetchSessionRow,
        GroupInternals,
        GroupRow,
        LogRow,
        PartitionRow,
        ProcessorRow,
        QuotaRow,
        RequestRow,
        TaskRow,
        TopicRow,
        TransactionRow,
    )

#: The maximum number of the busiest connections.
BUSIEST_MAX = 10
#: The maximum number of requests kept of the connection that is shown.
REQUESTS_MAX = 500
#: The reason shown for parts of ``/snapshot`` from a broker of a different version.
_UNKNOWN_FORMAT = "this broker reports some data in an unknown format"
#: The subject of the alarm that no broker can be reached.
REACHABILITY: Final = "reachability"


def _activity(row: ConnectionRow) -> tuple[float, float]:
    return row.request_rate or 0.0, row.byte_rate or 0.0


class Model:
    """The state that all views show.

    Attributes:
        about: the broker or cluster that is shown.
        changed: called by sources after each change.
        figures: the figures of the overview, keyed by name, with histories.
        apis: request counts and times, keyed by API name.
        channels: the open channels by what they do; None if unknown.
        connections: the open connections, keyed by number.
        busiest: the connections with the most requests, and then bytes, per second, without those
            of dashboards.
        dashboards: the connections of dashboards, such as this one.
        requests: requests of :attr:`requests_of`, keyed by number, the newest first.
        requests_of: the id of a connection; None if no connection's requests are shown.
        requests_skipped: the number of its requests that came faster than they could be read.
        closed: closed connections, keyed by number, the most recent first.
        close_reasons: the number of closed connections, keyed by the name of the reason.
        processors: the network processors, keyed by number.
        fetch_sessions: the incremental fetch sessions, keyed by number.
        log: lines of the broker's log, keyed by number, the newest first.
        faults: the faults injected into a broker under test, keyed by number, the newest first.
        tasks: trio's tasks, keyed by number, in the order of the task tree.
        brokers: the brokers of the cluster, keyed by id.
        topics: the topics, keyed by name.
        partitions: the partitions of the shown topics, keyed by topic and number.
        groups: the groups, keyed by name.
        transactions: the transactions, keyed by transactional id and producer id.
        configs: the configs of :attr:`configs_of`, keyed by name.
        configs_of: ``("topic", name)`` or ``("broker", id)``.
        quotas: the quotas, keyed by entity and key: connection quotas if a broker reports them,
            followed by client quotas.
        client_quotas_missing: why client quotas are unavailable; None if they are available.
        tail: records, keyed by sequence number, the newest first.
        tail_of: the topic of :attr:`tail` and its partition, or None for all partitions.
        tail_skipped: the number of records skipped because they arrived too fast.
        pipeline: the results of ``trionet pipeline run``.
        alarms: the problems that the user must notice, as sentences keyed by subject.
        failing: since when reads have been failing, keyed by subject; see :attr:`alarms` for why.
        responded_at: when a read last succeeded, in seconds on this loop's clock; None before.
        unreachable: why no broker can be reached, as a sentence; None if one can.
        is_refused: whether no bootstrap server accepts connections, so that to wait is in vain
            unless one is started.
    """

    def __init__(self) -> None:
        self.changed: Callable[[], None] = lambda: None
        self.about = About()
        self.figures = Figures()
        self.apis: Section[str, ApiRow] = Section()
        self.channels: ChannelCounts | None = None
        self.connections: Section[int, ConnectionRow] = Section()
        self.busiest: Sequence[ConnectionRow] = ()
        self.dashboards: Sequence[ConnectionRow] = ()
        self.requests: Section[int, RequestRow] = Section()
        self.requests_of: str | None = None
        self.requests_skipped = 0
        self.closed: Section[int, ClosedRow] = Section()
        self.close_reasons: Section[str, CloseReasonRow] = Section()
        self.processors: Section[int, ProcessorRow] = Section()
        self.fetch_sessions: Section[int, FetchSessionRow] = Section()
        self.log: Section[int, LogRow] = Section()
        self.faults: Section[int, FaultRow] = Section()
        self.tasks: Section[int, TaskRow] = Section()
        self.brokers: Section[int, BrokerRow] = Section()
        self.topics: Section[str, TopicRow] = Section()
        self.partitions: Section[tuple[str, int], PartitionRow] = Section()
        self.groups: Section[str, GroupRow] = Section()
        self.transactions: Section[tuple[str, int], TransactionRow] = Section()
        self.configs: Section[str, ConfigRow] = Section()
        self.configs_of: tuple[str, str] | None = None
        self.quotas: Section[tuple[str, str], QuotaRow] = Section()
        self.client_quotas_missing: str | None = None
        self.tail: Section[int, TailRow] = Section()
        self.tail_of: tuple[str, int | None] | None = None
        self.tail_skipped = 0
        self.pipeline = Pipeline()
        self.alarms: dict[str, str] = {}
        self.failing: dict[str, float] = {}
        self.responded_at: float | None = None
        self.unreachable: str | None = None
        self.is_refused = False
        # The sections of the lists in ``/snapshot``, keyed by list name.
        self._lists: Mapping[str, Section[int, Any]] = {
            "connections": self.connections,
            "recently_closed": self.closed,
            "fetch_sessions": self.fetch_sessions,
            "log": self.log,
            "tasks": self.tasks,
            "faults": self.faults,
        }
        self._network_figures: Collection[str] = ()
        self._rates = BrokerRates()
        self._client_quotas: Mapping[tuple[str, str], QuotaRow] = {}
        self._connection_quotas: Mapping[tuple[str, str], QuotaRow] = {}
        self._groups: dict[str, GroupRow] = {}
        self._group_pasts: dict[str, GroupPast] = {}
        self._group_internals: dict[str, GroupInternals] = {}

    @property
    def has_internals(self) -> bool:
        """Whether a broker's inside was read at least once; only trionet's brokers report it."""
        return bool(self._network_figures)

    @property
    def problems(self) -> list[str]:
        """The alarms to show: if no broker can be reached, only that, as others follow from it."""
        if REACHABILITY in self.alarms:
            return [self.alarms[REACHABILITY]]
        return list(self.alarms.values())

    # A broker's network layer is missing or cannot be read.

    def mark_network_missing(self, why: str) -> None:
        """Mark the broker's network layer as unavailable from this source."""
        for section in self._network_sections():
            section.mark_missing(why)

    def mark_network_failed(self, why: str) -> None:
        """Mark the broker's network layer as currently unreadable.

        Counters keep their last values, shown with an age. Rates and histories become unknown.
        """
        from ._rows import QuotaRow

        self.about = attrs.evolve(self.about, uptime_seconds=None)
        self.channels = None
        self.apis.amend(self._rates.unknown_apis(self.apis))
        self.processors.amend(self._rates.unknown_processors(self.processors))
        self.close_reasons.amend(
            {reason: attrs.evolve(row, rate=None) for reason, row in self.close_reasons.items()}
        )
        # Client quotas in the same section have no age, so measured values must not stay either.
        self._connection_quotas = {
            key: QuotaRow(row.entity, row.key, row.limit)
            for key, row in self._connection_quotas.items()
        }
        self.quotas.amend({**self._connection_quotas, **self._client_quotas})
        for section in self._network_sections():
            section.mark_failed(why)
        self._group_internals = {}  # what the cluster reports about groups is newer from now on
        is_known = self.topics.updated_at is not None and self.topics.failure is None
        by_others = ("topics", "partitions") if is_known else ()
        self.figures.mark_unknown(name for name in self._network_figures if name not in by_others)

    def _network_sections(self) -> list[Section[Any, Any]]:
        """Return all sections that come from the broker's network layer."""
        return [self.apis, self.processors, self.close_reasons, *self._lists.values()]

    def mark_cluster_failed(self, names: Iterable[str]) -> None:
        """Mark figures of the cluster as unknown, unless a broker's snapshot has them."""
        reported = () if self.apis.failure is not None else self._network_figures
        self.figures.mark_unknown(name for name in names if name not in reported)

    def set_alarm(self, about: str, alarm: str | None, since: float | None = None) -> None:
        """Set or clear the alarm about a subject.

        Args:
            about: the subject of the alarm.
            alarm: the alarm as a sentence; None to clear the alarm.
            since: since when reads of the subject have been failing, in seconds on this loop's
                clock; None if the alarm has another cause.
        """
        if alarm is None:
            self.alarms.pop(about, None)
            self.failing.pop(about, None)
        else:
            self.alarms[about] = alarm
            if since is not None:
                self.failing.setdefault(about, since)

    # The broker's network layer.

    def update_network(self, snapshot: BrokerSnapshot, now: float) -> None:
        """Update the model from a broker's ``/snapshot``, except for the lists.

        Args:
            snapshot: the snapshot, with the time on the broker's clock.
            now: the current time in seconds on this loop's clock.

        Raises:
            MALFORMED: what the broker reports about itself is in an unknown format.
        """
        reported = reported_about(snapshot.about)
        for section in self._lists.values():
            section.clear_errors()
        self._rates.begin(snapshot.at, reported.uptime_seconds)
        version = reported.trionet
        self.about = attrs.evolve(
            self.about,
            software=None if version is None else f"trionet {version}",
            node_id=reported.node_id,
            cluster_id=reported.cluster_id,
            uptime_seconds=reported.uptime_seconds,
            listeners=reported.listeners or (),
        )
        unknown = self._update_parts(snapshot, now)
        self._show_quotas(now)
        unknown |= self._update_figures(snapshot, now)
        names = ", ".join(sorted(unknown))
        self.set_alarm("parts", f"{_UNKNOWN_FORMAT}: {names}" if unknown else None)

    def _update_parts(self, snapshot: BrokerSnapshot, now: float) -> set[str]:
        """Update each part, and return the names of parts in an unknown format."""
        from ._rows import channel_counts, quota_row

        unknown: set[str] = set()
        parts: list[tuple[str, Section[Any, Any], Callable[[BrokerSnapshot], Any]]] = [
            ("apis", self.apis, self._rates.apis),
            ("processors", self.processors, self._rates.processors),
            ("closed", self.close_reasons, self._rates.close_reasons),
        ]
        for part, section, rows_of in parts:
            try:
                rows = rows_of(snapshot)
            except MALFORMED:
                unknown.add(part)
                section.mark_failed(f"{_UNKNOWN_FORMAT}: {part}")
                continue
            if rows is None:
                section.mark_missing("this broker is too old: its snapshot does not list APIs")
            else:
                section.replace(rows, now)
        try:
            self.channels = channel_counts(snapshot.about["channels"])
        except MALFORMED:  # or an older broker; the figures about them say which
            self.channels = None
        self._connection_quotas = {}
        try:
            self._connection_quotas = {
                (values["entity"], values["key"]): quota_row(values)
                for values in snapshot.about.get("quotas", ())
            }
        except MALFORMED:
            unknown.add("quotas")
        return unknown

    def _update_figures(self, snapshot: BrokerSnapshot, now: float) -> set[str]:
        """Update the figures, and return the names of parts in an unknown format."""
        # Histories use this loop's clock, since other sources add figures too; rates the broker's.
        values, unknown = read_figures(LEVELS, snapshot.about)
        counts, unknown_counts = read_figures(COUNTS, snapshot.about)
        counts |= counters(snapshot.readings)
        is_known = self.apis.missing is None and self.apis.failure is None
        counts["errors"] = sum(row.errors for row in self.apis.values()) if is_known else None
        for name, count in counts.items():
            values[name] = (
                None if count is None else self._rates.rate(("figure", name), snapshot.at, count)
            )
        values |= gauges(snapshot.readings)
        for name, value in values.items():
            self.figures.put(name, now, value)
        self._network_figures = values.keys()
        return unknown | unknown_counts

    # Lists of ``/snapshot``. Long ones are converted in slices: a row costs microseconds, and other
    # tasks share the loop.

    def make_rows(self, section: str, rows: Iterable[Mapping[str, Any]]) -> dict[int, Any]:
        """Convert the rows of a list in ``/snapshot`` for :meth:`replace_rows`, keyed by number.

        Args:
            section: the name of the list in ``/snapshot``.
            rows: the rows as JSON objects.
        """
        from ._rows import GROWN, MAKERS

        grown = GROWN.get(section)
        if grown is not None:
            before = self._lists[section]
            return {each["number"]: grown(each, before.get(each["number"])) for each in rows}
        return {row.number: row for row in map(MAKERS[section], rows)}

    def replace_rows(self, section: str, rows: dict[int, Any], total: int, now: float) -> None:
        """Replace all rows of a list.

        Args:
            section: the name of the list in ``/snapshot``.
            rows: the rows from :meth:`make_rows`, the newest first.
            total: the number of rows that the broker has, which exceeds the number in ``rows`` if
                the list was not read completely.
            now: the current time in seconds on this loop's clock.
        """
        if section == "tasks":
            from ._task_tree import in_tree_order

            rows = in_tree_order(rows.values())
        elif section == "connections":
            self.dashboards = [row for row in rows.values() if row.is_dashboard]
            observed = (row for row in rows.values() if not row.is_dashboard)
            self.busiest = nlargest(BUSIEST_MAX, observed, key=_activity)
        self._lists[section].replace(rows, now, total)

    def mark_list_missing(self, section: str, why: str) -> None:
        """Mark a list as one that the broker does not have.

        Args:
            section: the name of the list in ``/snapshot``.
            why: the reason, as a sentence.
        """
        self._lists[section].mark_missing(why)

    def mark_list_failed(self, section: str, why: str) -> None:
        """Mark a list as currently unreadable, keeping its rows, which are shown with an age.

        Args:
            section: the name of the list in ``/snapshot``.
            why: the reason, as a sentence.
        """
        if section == "groups":
            self._group_internals = {}  # what the cluster reports about them is newer from now on
        elif section == "transactions":
            self.transactions.mark_failed(why)
        else:
            self._lists[section].mark_failed(why)

    # The configs that are shown.

    def select_configs(self, of: tuple[str, str]) -> None:
        """Switch to the configs of another topic or broker."""
        self.configs_of = of
        self.configs = Section()
        self.set_alarm("configs", None)

    # Requests and records as they arrive.

    def select_requests(self, of: str | None) -> None:
        """Switch to the requests of another connection, or of none."""
        self.requests_of, self.requests_skipped = of, 0
        self.requests = Section()

    def append_requests(self, rows: Sequence[RequestRow], skipped: int, now: float) -> None:
        """Append requests, dropping the oldest if there are too many.

        Args:
            rows: the requests, the newest first.
            skipped: the number of requests between them and those of before.
            now: the current time in seconds on this loop's clock.
        """
        kept = islice(self.requests.items(), max(0, REQUESTS_MAX - len(rows)))
        newest = {row.number: row for row in rows[:REQUESTS_MAX]}
        self.requests.replace({**newest, **dict(kept)}, now)
        self.requests_skipped += skipped

    def select_tail(self, of: tuple[str, int | None] | None) -> None:
        """Switch to the records of another topic or partition, or of none."""
        self.tail_of, self.tail_skipped = of, 0
        self.tail = Section()

    def append_tail(self, records: Sequence[ConsumerRecord], skipped: int, now: float) -> None:
        """Append records to the tail, dropping the oldest if there are too many.

        Args:
            records: the records in order of arrival.
            skipped: the number of records skipped before them.
            now: the current time in seconds on this loop's clock.
        """
        first = next(iter(self.tail), -1) + 1
        rows = [TailRow.of(record, first + index) for index, record in enumerate(records)]
        kept = list(islice(self.tail.items(), max(0, RECORDS_MAX - len(rows))))
        newest = {row.number: row for row in reversed(rows[-RECORDS_MAX:])}
        self.tail.replace({**newest, **dict(kept)}, now)
        self.tail_skipped += skipped

    # Quotas and groups, which two sources report.

    def update_client_quotas(
        self, rows: Mapping[tuple[str, str], QuotaRow] | None, missing: str | None, now: float
    ) -> None:
        """Replace the client quotas, or record why client quotas are unavailable."""
        self._client_quotas, self.client_quotas_missing = rows or {}, missing
        self._show_quotas(now)

    def _show_quotas(self, now: float) -> None:
        rows = {**self._connection_quotas, **self._client_quotas}
        if rows or self.client_quotas_missing is None:
            self.quotas.replace(rows, now)
        else:
            self.quotas.mark_missing(self.client_quotas_missing)

    def update_groups(
        self,
        rows: Mapping[str, GroupRow],
        now: float,
        *,
        all_of: set[str] | None = None,
        total: int | None = None,
    ) -> None:
        """Update groups from a report of the cluster.

        Args:
            rows: the rows, keyed by group name, which replace earlier rows of the same groups.
            now: the current time in seconds on this loop's clock.
            all_of: the names of all groups, so that others are dropped; None if not known.
            total: the number of groups, if known.
        """
        from ._rows import with_internals

        inside = self._group_internals
        pasts = self._group_pasts
        rows = {id: pasts.setdefault(id, GroupPast()).update(row) for id, row in rows.items()}
        self._groups |= rows
        self.groups.update(
            {
                id: with_internals(row, inside[id]) if id in inside else row
                for id, row in rows.items()
            },
            now,
            total,
        )
        if all_of is not None:
            self._groups = {id: row for id, row in self._groups.items() if id in all_of}
            self._group_pasts = {id: past for id, past in pasts.items() if id in all_of}
            self.groups.retain(all_of | inside.keys(), now)
            self._groups_changed(now)

    def update_group_internals(self, groups: Iterable[Mapping[str, Any]], now: float) -> None:
        """Update the groups from a broker's snapshot, which may be partial."""
        from ._rows import from_internals, group_internals, with_internals

        rows = {}
        for inside in map(group_internals, groups):
            id = inside.id
            self._group_internals[id] = inside
            row = self._groups.get(id)
            rows[id] = from_internals(inside) if row is None else with_internals(row, inside)
        self.groups.update(rows, now)
        self._groups_changed(now)

    def retain_group_internals(self, ids: set[str], now: float) -> None:
        """Drop the snapshot's data about groups that are not in ``ids``."""
        inside = self._group_internals
        if len(inside) > len(ids):
            self._group_internals = {id: values for id, values in inside.items() if id in ids}
            self.groups.retain(ids | self._groups.keys(), now)
            self._groups_changed(now)

    def _groups_changed(self, now: float) -> None:
        self.figures.put("groups", now, len(self.groups))

    def group(self, id: str) -> GroupRow | None:
        """Return the row last reported by the cluster, or None if the group is unknown."""
        return self._groups.get(id)
