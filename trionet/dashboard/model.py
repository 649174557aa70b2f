"""What the dashboard knows: what sources tell, as rows, rates and histories.

Pure: no I/O, and time is a parameter. Sources fold in what they learn; views read. Everything that
is remembered is bounded: histories by :mod:`.history`, lists by what the source has.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import attrs

from . import network_figures
from .api_times import ApiTimes
from .figures import Figures
from .group_rows import from_internals, with_internals
from .history import History, Rate
from .pipeline import Pipeline
from .readings import MALFORMED, BrokerSnapshot
from .rows import (
    About,
    ApiRow,
    BrokerRow,
    ClosedRow,
    CloseReasonRow,
    ConfigRow,
    ConnectionRow,
    FetchSessionRow,
    GroupRow,
    LogRow,
    PartitionRow,
    ProcessorRow,
    QuotaRow,
    TaskRow,
    TopicRow,
    row_factory,
)
from .section import Section
from .tail import RECORDS_MAX, TailRow

if TYPE_CHECKING:
    from ..client.consumer import ConsumerRecord

#: By the names of lists in ``/snapshot``.
_MAKERS: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
    "connections": row_factory(ConnectionRow),
    "recently_closed": row_factory(ClosedRow),
    "fetch_sessions": row_factory(FetchSessionRow),
    "log": row_factory(LogRow),
}
#: Said of parts of ``/snapshot``, of which the broker may be of another version than this program.
_ODD = "what the broker tells of these has another form than is known here"
_quota = row_factory(QuotaRow)
_processor = row_factory(ProcessorRow)


class Model:
    """All that is known.

    Attributes:
        about: whom the dashboard watches.
        version: grows with each change of anything.
        figures: the numbers of the overview, by name, and their histories.
        apis: requests by the name of their API.
        connections: open connections by their number.
        closed: connections that have ended, by their number, the last one first.
        close_reasons: how many ended, by the reason's name; all reasons that ever occurred.
        processors: network processors by their number.
        fetch_sessions: by their number.
        log: the broker's log by line number, the last line first.
        tasks: of trio, by their number, in the order of the tree.
        brokers: of the cluster, by id.
        topics: by name.
        partitions: by topic and number; of the topics that were asked for.
        groups: by name.
        configs: settings by name, of what was asked for in :attr:`configs_of`.
        configs_of: ``("topic", name)`` or ``("broker", id)``.
        quotas: by entity and key: of connections where a broker tells, then of clients.
        client_quotas_missing: why there are none of clients, in a sentence.
        tail: records as they come, the newest first, by the order in which they came.
        tail_of: the topic and the partition (None for all) that they are of.
        tail_skipped: records that were passed over because they came too fast.
        pipeline: what ``trionet pipeline run`` has found out.
        alarms: what a user has to know at once, by what it is about.
        failing: since when what cannot be read is not known, by what it is; the alarms say why.
    """

    def __init__(self) -> None:
        self.about = About()
        self.version = 0
        self.figures = Figures()
        self.apis: Section[str, ApiRow] = Section()
        self.connections: Section[int, ConnectionRow] = Section()
        self.closed: Section[int, ClosedRow] = Section()
        self.close_reasons: Section[str, CloseReasonRow] = Section()
        self.processors: Section[int, ProcessorRow] = Section()
        self.fetch_sessions: Section[int, FetchSessionRow] = Section()
        self.log: Section[int, LogRow] = Section()
        self.tasks: Section[int, TaskRow] = Section()
        self.brokers: Section[int, BrokerRow] = Section()
        self.topics: Section[str, TopicRow] = Section()
        self.partitions: Section[tuple[str, int], PartitionRow] = Section()
        self.groups: Section[str, GroupRow] = Section()
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
        self._network_figures: Collection[str] = ()
        self._apis: dict[str, ApiTimes] = {}
        self._rates: dict[object, Rate] = {}
        # When the broker was seen last, and how long it had been up.
        self._seen: tuple[float | None, float | None] = (None, None)
        self._processors: dict[int, History] = {}
        self._client_quotas: Mapping[tuple[str, str], QuotaRow] = {}
        self._connection_quotas: Mapping[tuple[str, str], QuotaRow] = {}
        self._groups: dict[str, GroupRow] = {}
        self._group_internals: dict[str, Mapping[str, Any]] = {}

    # What a source that knows nothing of a broker's inside says.

    def mark_network_missing(self, why: str) -> None:
        """Say why there is nothing of the broker's network layer."""
        for section in self._network_sections():
            section.mark_missing(why)
        self.version += 1

    def mark_network_failed(self, why: str) -> None:
        """Say why a broker that has told of its inside does not do so now.

        What it had counted stays, and has an age; what it was doing of late is not known.
        """
        self.about = attrs.evolve(self.about, uptime_seconds=None)
        # Of one that came back with a list of another form the rows are left, but no history.
        self.apis.amend(
            {
                name: (self._apis.get(name) or ApiTimes(name)).mark_unknown(row)
                for name, row in self.apis.items()
            }
        )
        for history in self._processors.values():
            history.mark_unknown()
        unknown: dict[str, Any] = {f"{rate}_rate": None for rate, _ in _PROCESSOR_RATES}
        self.processors.amend(
            {id: attrs.evolve(row, **unknown) for id, row in self.processors.items()}
        )
        self.close_reasons.amend(
            {reason: attrs.evolve(row, rate=None) for reason, row in self.close_reasons.items()}
        )
        # Beside those of clients these have no age of their own: nothing that was measured stays.
        self._connection_quotas = {
            key: QuotaRow(row.entity, row.key, row.limit)
            for key, row in self._connection_quotas.items()
        }
        self.quotas.amend({**self._connection_quotas, **self._client_quotas})
        for section in self._network_sections():
            section.mark_failed(why)
        self._group_internals = {}  # what the cluster tells of groups is newer from now on
        has_data = self.topics.updated_at is not None and self.topics.failure is None
        by_others = ("topics", "partitions") if has_data else ()
        self.figures.mark_unknown(name for name in self._network_figures if name not in by_others)
        self.version += 1

    def _network_sections(self) -> list[Section[Any, Any]]:
        """All that is of the broker's network layer."""
        return [self.apis, self.processors, self.close_reasons, *self._lists().values()]

    def _lists(self) -> Mapping[str, Section[int, Any]]:
        """By their names in ``/snapshot``."""
        return {
            "connections": self.connections,
            "recently_closed": self.closed,
            "fetch_sessions": self.fetch_sessions,
            "log": self.log,
        }

    def mark_cluster_failed(self, names: Iterable[str]) -> None:
        """Take that some figures of the cluster are not known now, unless its broker tells them."""
        told = () if self.apis.failure is not None else self._network_figures
        self.figures.mark_unknown(name for name in names if name not in told)
        self.version += 1

    def set_alarm(self, about: str, alarm: str | None, since: float | None = None) -> None:
        """Have a user know something until it is None.

        Args:
            about: what it is about.
            alarm: a sentence.
            since: since when something is not known, if that is what it means; in seconds of this
                loop's clock.
        """
        if alarm is None:
            self.alarms.pop(about, None)
            self.failing.pop(about, None)
        else:
            self.alarms[about] = alarm
            if since is not None:
                self.failing.setdefault(about, since)
        self.version += 1

    # The broker's network layer.

    def update_network(self, taken: BrokerSnapshot, now: float) -> None:
        """Take what a broker tells of itself.

        Args:
            taken: what it tells, with the time of its own clock.
            now: in seconds of this loop's clock.
        """
        about, at = taken.about, taken.at
        for section in self._lists().values():
            section.clear_errors()
        self._reset_after_restart(at, about.get("uptime_seconds"))
        self.about = attrs.evolve(
            self.about,
            software=f"trionet {about['trionet']}" if "trionet" in about else None,
            node_id=about.get("node_id"),
            cluster_id=about.get("cluster_id"),
            uptime_seconds=about.get("uptime_seconds"),
            listeners=tuple(about.get("listeners", ())),
        )
        odd = self._update_parts(taken, now)
        self._show_quotas(now)
        odd |= self._update_figures(taken, now)
        names = ", ".join(sorted(odd))
        self.set_alarm("parts", f"{_ODD}: {names}" if odd else None)
        self.version += 1

    def _update_parts(self, taken: BrokerSnapshot, now: float) -> set[str]:
        """Take the parts one by one; gives those that have another form than they should."""
        odd: set[str] = set()
        for part, section, fold in (
            ("apis", self.apis, self._update_apis),
            ("processors", self.processors, self._update_processors),
            ("closed", self.close_reasons, self._update_closed),
            ("quotas", None, self._update_quotas),
        ):
            try:
                fold(taken, now)
            except MALFORMED:
                odd.add(part)
                if section is not None:
                    section.mark_failed(f"{_ODD}: {part}")
        return odd

    def _reset_after_restart(self, at: float, uptime: float | None) -> None:
        """Forget counts of a broker that was started again: they may have outgrown the old ones.

        Its clock is another one, too: each loop of trio's counts from wherever it likes.
        """
        before_at, before_uptime = self._seen
        self._seen = at, uptime
        if before_at is None or uptime is None or before_uptime is None:
            return
        if at < before_at or uptime < before_uptime or at - uptime > before_at:
            for kept in (self._rates, self._apis, self._processors):
                kept.clear()

    def _update_apis(self, taken: BrokerSnapshot, now: float) -> None:
        if "apis" not in taken.about:
            self.apis.mark_missing("this broker is too old: its snapshot has no list of APIs")
            return
        rows = {}
        for told in taken.about["apis"]:
            name = told["name"]
            times = self._apis.setdefault(name, ApiTimes(name))
            rows[name] = times.update(taken.at, told)
        self.apis.replace(rows, now)

    def _update_processors(self, taken: BrokerSnapshot, now: float) -> None:
        rows, at = {}, taken.at
        for told in taken.about.get("processors", ()):
            id = told["id"]
            history = self._processors.setdefault(id, History())
            rates = {
                f"{rate}_rate": self._rate(("processor", id, count), at, told[count])
                for rate, count in _PROCESSOR_RATES
            }
            if rates["request_rate"] is not None:
                history.add(at, rates["request_rate"])
            rows[id] = _processor({**told, **rates, "history": history})
        self.processors.replace(rows, now)

    def _update_closed(self, taken: BrokerSnapshot, now: float) -> None:
        rows = {
            reason: CloseReasonRow(reason, count, self._rate(("closed", reason), taken.at, count))
            for reason, count in taken.about.get("closed", {}).items()
        }
        self.close_reasons.replace(rows, now)

    def _update_quotas(self, taken: BrokerSnapshot, now: float) -> None:  # noqa: ARG002 - as the others
        self._connection_quotas = {}
        self._connection_quotas = {
            (told["entity"], told["key"]): _quota(told) for told in taken.about.get("quotas", ())
        }

    def _update_figures(self, taken: BrokerSnapshot, now: float) -> set[str]:
        """Take the figures; gives the parts that have another form than they should."""
        # Histories are of this loop's clock: others put figures, too. Rates are of the broker's.
        told, odd = network_figures.read(network_figures.LEVELS, taken.about)
        counts, odd_counts = network_figures.read(network_figures.COUNTS, taken.about)
        counts |= network_figures.counters(taken.readings)
        is_known = self.apis.missing is None and self.apis.failure is None
        counts["errors"] = sum(row.errors for row in self.apis.values()) if is_known else None
        for name, count in counts.items():
            told[name] = None if count is None else self._rate(("figure", name), taken.at, count)
        told |= network_figures.gauges(taken.readings)
        for name, value in told.items():
            self.figures.put(name, now, value)
        self._network_figures = told.keys()
        return odd | odd_counts

    def _rate(self, of: object, at: float, count: float) -> float | None:
        rate = self._rates.get(of)
        if rate is None:
            rate = self._rates[of] = Rate()
        return rate.update(at, count)

    # The lists of the broker's network layer. Long ones are taken in pieces, since a row costs some
    # microseconds, and others share the loop.

    def make_rows(self, section: str, rows: Iterable[Mapping[str, Any]]) -> dict[int, Any]:
        """Rows of a list of ``/snapshot`` by their number, to be put.

        Args:
            section: its name there.
            rows: as JSON has them.
        """
        return {row.number: row for row in map(_MAKERS[section], rows)}

    def replace_rows(self, section: str, rows: dict[int, Any], total: int, now: float) -> None:
        """Have a whole list.

        Args:
            section: its name in ``/snapshot``.
            rows: made, the newest first.
            total: how many the broker has; more than ``rows`` if not all were read.
            now: in seconds of this loop's clock.
        """
        self._lists()[section].replace(rows, now, total)
        self.version += 1

    def mark_list_failed(self, section: str, why: str) -> None:
        """Say why a list cannot be read now; its rows stay, and have an age.

        Args:
            section: its name in ``/snapshot``.
            why: a sentence.
        """
        if section == "groups":
            self._group_internals = {}  # what the cluster tells of them is newer from now on
        else:
            self._lists()[section].mark_failed(why)
        self.version += 1

    # Settings of what is looked at.

    def select_configs(self, of: tuple[str, str]) -> None:
        """Show the settings of something else from now on."""
        self.configs_of = of
        self.configs = Section()
        self.set_alarm("configs", None)

    # Records as they come.

    def select_tail(self, of: tuple[str, int | None] | None) -> None:
        """Show the records of another topic or partition from now on, or none."""
        self.tail_of, self.tail_skipped = of, 0
        self.tail = Section()
        self.version += 1

    def append_tail(self, records: Sequence[ConsumerRecord], skipped: int, now: float) -> None:
        """Take records that have come; the oldest ones are forgotten.

        Args:
            records: in the order in which they came.
            skipped: how many were passed over before them.
            now: in seconds of this loop's clock.
        """
        first = next(iter(self.tail), -1) + 1
        rows = [TailRow.of(record, first + index) for index, record in enumerate(records)]
        kept = list(islice(self.tail.items(), max(0, RECORDS_MAX - len(rows))))
        newest = {row.number: row for row in reversed(rows[-RECORDS_MAX:])}
        self.tail.replace({**newest, **dict(kept)}, now)
        self.tail_skipped += skipped
        self.version += 1

    # Quotas and groups, of which two sources tell.

    def update_client_quotas(
        self, rows: Mapping[tuple[str, str], QuotaRow] | None, missing: str | None, now: float
    ) -> None:
        """Take the quotas of clients, or why there are none."""
        self._client_quotas, self.client_quotas_missing = rows or {}, missing
        self._show_quotas(now)
        self.version += 1

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
        """Take groups as the cluster tells them.

        Args:
            rows: by name, in the place of what was known of them.
            now: in seconds of this loop's clock.
            all_of: the names of all that there are; None if there may be others.
            total: how many there are, if that is known.
        """
        inside = self._group_internals
        self._groups |= rows
        self.groups.update(
            {id: with_internals(row, inside[id]) if id in inside else row for id, row in rows.items()},
            now,
            total,
        )
        if all_of is not None:
            self._groups = {id: row for id, row in self._groups.items() if id in all_of}
            self.groups.retain(all_of | inside.keys(), now)
            self._groups_changed(now)
        self.version += 1

    def update_group_internals(self, told: Iterable[Mapping[str, Any]], now: float) -> None:
        """Take groups, or some of them, as their broker's snapshot tells them."""
        rows = {}
        for each in told:
            id = each["id"]
            self._group_internals[id] = each
            row = self._groups.get(id)
            rows[id] = from_internals(each) if row is None else with_internals(row, each)
        self.groups.update(rows, now)
        self._groups_changed(now)

    def retain_group_internals(self, ids: set[str], now: float) -> None:
        """Forget what the snapshot has told of other groups than these."""
        inside = self._group_internals
        if len(inside) > len(ids):
            self._group_internals = {id: told for id, told in inside.items() if id in ids}
            self.groups.retain(ids | self._groups.keys(), now)
            self._groups_changed(now)

    def _groups_changed(self, now: float) -> None:
        self.figures.put("groups", now, len(self.groups))
        self.version += 1

    def group(self, id: str) -> GroupRow | None:
        """A group as the cluster has told it last."""
        return self._groups.get(id)


#: The rates of a processor, and of which of its counts.
_PROCESSOR_RATES = (
    ("request", "requests"),
    ("response", "responses"),
    ("bytes_received", "bytes_received"),
    ("bytes_sent", "bytes_sent"),
)
