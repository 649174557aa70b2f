"""Sources for a broker's internals: its ``/snapshot``.

The figures of ``/snapshot`` are in each read, and a list is read while it is shown. The broker runs
in this process, or has a metrics listener for HTTP or HTTPS.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import quote, urlencode

import attrs
import trio

from ...errors import TrionetError
from ..model._model import Model
from ..model._row_factory import row_factory
from ..model._snapshot import MALFORMED, BrokerSnapshot, from_json, from_snapshot
from ._http_client import HttpClient, ResponseTooLargeError
from ._local_source import NoLocalSocketError
from ._source import INTERVAL_SECONDS, Started

if TYPE_CHECKING:
    from ...broker.telemetry._broker_metrics import BrokerMetrics


_OVERVIEW: Final = "overview"
#: The lists of ``/snapshot``, keyed by the section of the model that is shown.
LISTS: Final[Mapping[str, str]] = {
    _OVERVIEW: "connections",  # the busiest ones
    "connections": "connections",
    "requests": "connections",
    "closed": "recently_closed",
    "fetch_sessions": "fetch_sessions",
    "groups": "groups",
    "group": "groups",
    "log": "log",
    "tasks": "tasks",
    "faults": "faults",
}
#: The same without the Kafka protocol, over which the transactions of all brokers are read.
LISTS_WITHOUT_CLIENTS: Final = {**LISTS, "transactions": "transactions"}
#: The approximate CPU time per row of a list in the broker and the dashboard, in seconds.
ROW_SECONDS: Final = 30e-6
#: The maximum share of time for reading a list, in this process or the broker's process.
LIST_SHARE: Final = 0.02
#: The number of rows to read or convert before other tasks run, about a millisecond of work.
ROWS_PER_STEP: Final = 100
#: How a broker is read, for the header.
VIA_KAFKA: Final = "Kafka protocol"
VIA_LISTENER: Final = "metrics listener"
VIA_LOCAL: Final = "local socket"
_UNREADABLE: Final = (TrionetError, OSError, trio.BrokenResourceError)


#: The reason shown if a broker does not have a list, in general and of the list of this name.
TOO_OLD: Final = "this broker is too old to report this"
WITHOUT_LIST: Final[Mapping[str, str]] = {
    "faults": (
        "this broker is not under test; faults can be injected into the brokers of trionet.testing,"
        " and into one that is started with: trionet broker --faults"
    )
}


class NetworkSource:
    """A :class:`.Part` that reads the snapshots of a broker.

    Args:
        reader: reads the snapshots.
        what: the name of the broker in messages, such as ``http://127.0.0.1:9404``.
        lists: the lists to read, keyed by the section of the model that is shown.
        via: how the broker is read, for the header; empty if that goes without saying.
    """

    def __init__(
        self,
        reader: SnapshotReader,
        what: str,
        lists: Mapping[str, str] = LISTS,
        *,
        via: str = "",
    ) -> None:
        self.interval_seconds = INTERVAL_SECONDS
        self._reader = reader
        self._what = what
        self._lists = lists
        self._via = via
        self._list: str | None = None
        self._is_overview = True
        self._is_started = False
        self._connection: str | None = None
        self._is_gone = False
        self._is_recorded = False
        self._wake = trio.Event()
        self._list_due_at = 0.0

    def focus(self, section: str | None, key: object = None) -> None:
        """Select the data to show; see :meth:`.Source.focus`."""
        self._is_overview = section == _OVERVIEW
        connection = key if section == "requests" and isinstance(key, str) else None
        if connection != self._connection:
            self._connection, self._is_gone = connection, False
            self._wake.set()
        # The figures of the first frame wait for no list.
        is_due = self._is_started or not self._is_overview
        name = self._lists.get(section) if section is not None and is_due else None
        if name != self._list:
            self._list, self._list_due_at = name, 0.0
            self._wake.set()

    async def run(self, model: Model, *, task_status: Started = trio.TASK_STATUS_IGNORED) -> None:
        """Update the model until cancelled; see :class:`.Source`."""
        # Beside the loop, which may be that of a broker. A first frame does not wait for it.
        await trio.to_thread.run_sync(import_module, "..model._rows", __package__)
        has_succeeded = False
        succeeded_at = trio.current_time()
        while True:
            began = trio.current_time()
            self._wake = trio.Event()
            try:
                problem = await self._read(model)
            except (*_UNREADABLE, *MALFORMED) as error:
                is_gone = has_succeeded and isinstance(error, NoLocalSocketError)
                reason = "it is gone" if is_gone else _reason(error)
                why = f"{self._what} could not be read: {reason}"
                if has_succeeded:
                    model.set_alarm(self._what, why, succeeded_at)
                    model.mark_network_failed(why)
                elif isinstance(error, NoLocalSocketError):
                    _mark_kafka_only(model, str(error))
                else:
                    model.set_alarm(self._what, why, succeeded_at)
                    model.mark_network_missing(why)
            else:
                has_succeeded = True
                succeeded_at = model.responded_at = trio.current_time()
                model.about = attrs.evolve(model.about, via=self._via)
                model.set_alarm(self._what, problem)
            model.changed()
            if not self._is_started:
                self._is_started = True
                task_status.started()
                if self._is_overview:
                    self._list = self._lists.get(_OVERVIEW)
            with trio.move_on_at(began + self.interval_seconds):
                await self._wake.wait()

    async def _read(self, model: Model) -> str | None:
        """Read the figures and the list, and return why the list could not be read, or None."""
        model.update_network(await self._reader.take(), trio.current_time())
        if model.requests_of != self._connection:
            model.select_requests(self._connection)
            self._is_recorded = False
        if self._connection is not None:
            await self._read_requests(model, self._connection)
        name = self._list
        if name is None or trio.current_time() < self._list_due_at:
            return None
        try:
            await self._read_list(model, name)
            if self._connection is not None:
                await self._read_why_closed(model, self._connection)
        except NoSuchListError:
            model.mark_list_missing(name, WITHOUT_LIST.get(name, TOO_OLD))
        except (*_UNREADABLE, *MALFORMED) as error:
            why = f"{name} of {self._what} could not be read: {_reason(error)}"
            model.mark_list_failed(name, why)
            return why
        return None

    async def _read_requests(self, model: Model, connection: str) -> None:
        """Read the newest requests of a connection, as many as are worth showing."""
        from ..model._rows import request_row

        last = next(iter(model.requests), 0)
        is_first = model.requests.updated_at is None
        # The broker records them from the first read on, whose response is therefore empty and says
        # nothing about the requests of the connection.
        is_recorded, self._is_recorded = self._is_recorded, True
        try:
            found = await self._reader.requests(connection, REQUESTS_PER_READ)
            rows = [row for row in map(request_row, found) if row.number > last]
        except (*_UNREADABLE, *MALFORMED) as error:
            model.requests.mark_failed(f"requests could not be read: {_reason(error)}")
            return
        if connection != self._connection or not (rows or is_recorded):
            return  # another one is shown by now, or nothing is known yet
        has_gap = not is_first and len(rows) == len(found) == REQUESTS_PER_READ
        skipped = max(0, rows[-1].number - last - 1) if has_gap else 0
        model.append_requests(rows, skipped, trio.current_time())

    async def _read_why_closed(self, model: Model, connection: str) -> None:
        """Read once why a connection was closed."""
        if not self._is_gone and all(row.id != connection for row in model.connections.values()):
            self._is_gone = True
            await self._read_list(model, "recently_closed")

    async def _read_list(self, model: Model, name: str) -> None:
        from ..model._rows import transaction_from_snapshot

        rows, total = await self._reader.rows(name)
        converted: dict[Any, Any] = {}
        for first in range(0, len(rows), ROWS_PER_STEP):
            part = rows[first : first + ROWS_PER_STEP]
            if name == "groups":
                model.update_group_internals(part, trio.current_time())
            elif name == "transactions":
                transactions = map(transaction_from_snapshot, part)
                converted |= {(row.id, row.producer_id): row for row in transactions}
            else:
                converted |= model.make_rows(name, part)
            await trio.lowlevel.checkpoint()
        if name == "groups":
            model.retain_group_internals({row["id"] for row in rows}, trio.current_time())
        elif name == "transactions":
            model.transactions.replace(converted, trio.current_time(), total)
        else:
            model.replace_rows(name, converted, total, trio.current_time())
        if name != self._list:
            return  # another list is shown by now, and is read without a pause
        # An estimate rather than measured time, most of which is waiting on a busy machine.
        spent = len(rows) * ROW_SECONDS
        self._list_due_at = trio.current_time() + spent / LIST_SHARE - self.interval_seconds / 2


def _mark_kafka_only(model: Model, why: str) -> None:
    """Mark the internals as missing once the broker has responded: until then it may be ours."""
    if model.responded_at is not None:
        model.about = attrs.evolve(model.about, via=VIA_KAFKA)
        model.mark_network_missing(why)


def _reason(error: Exception) -> str:
    """Return a description of the error for the user."""
    if isinstance(error, _UNREADABLE):
        return str(error)
    return f"unknown format: {error!r}"


#: The number of rows per page, the maximum that a listener returns.
ROWS_PER_PAGE: Final = 500
#: The maximum size of a page in bytes: parsing it holds up the loop for some milliseconds. A page
#: that is larger is read again with fewer rows.
PAGE_BYTES_MAX: Final = 2 * 1024 * 1024
#: The maximum number of rows that are read of a list.
ROWS_MAX: Final = 100_000
#: The divisor of the number of rows after a page that was too large.
FEWER_ROWS: Final = 8
#: The maximum number of requests of a connection in one read, more than a screen has lines.
REQUESTS_PER_READ: Final = 200
#: The supported version of ``/snapshot``.
VERSION: Final = 1


class SnapshotReader(Protocol):
    """A reader of a broker's ``/snapshot``."""

    async def take(self) -> BrokerSnapshot:
        """Read the snapshot without the lists.

        Raises:
            TrionetError: the request failed, or the server is not a trionet broker.
            OSError: the broker could not be reached.
        """
        ...

    async def rows(self, section: str) -> tuple[Sequence[Mapping[str, Any]], int]:
        """Read a list, newest row first, and return its rows and the total number of rows."""
        ...

    async def requests(self, connection: str, count_max: int) -> Sequence[Mapping[str, Any]]:
        """Read the last requests of a connection, the newest first, from the first call on."""
        ...


class InProcessReader:
    """A :class:`.SnapshotReader` for a broker in this process.

    Args:
        metrics: the metrics of the broker; see :meth:`trionet.Broker.watch`.
    """

    def __init__(self, metrics: BrokerMetrics) -> None:
        self._metrics = metrics

    async def take(self) -> BrokerSnapshot:
        await trio.lowlevel.checkpoint()
        return from_snapshot(self._metrics.snapshot_without_requests(), self._metrics.about())

    async def rows(self, section: str) -> tuple[Sequence[Mapping[str, Any]], int]:
        metrics = self._metrics
        page_of = metrics.sections.get(section)
        if page_of is None:
            if section not in metrics.streams:
                raise NoSuchListError(section)
            page_of = metrics.streams[section]({})
        rows: list[Mapping[str, Any]] = []
        before: int | None = None
        while True:
            await trio.lowlevel.checkpoint()
            page = page_of(ROWS_PER_STEP, before)
            rows += page.rows
            if len(page.rows) < ROWS_PER_STEP:
                return rows, page.total
            before = page.rows[-1]["number"]  # type: ignore[assignment] # an int

    async def requests(self, connection: str, count_max: int) -> Sequence[Mapping[str, Any]]:
        await trio.lowlevel.checkpoint()
        return self._metrics.streams["requests"]({"connection": connection})(count_max, None).rows

    async def close_connection(self, id: str) -> bool:
        """Close a connection, and return whether it existed."""
        await trio.lowlevel.checkpoint()
        return self._metrics.close_connection(id)

    async def order(self, path: str, parameters: Mapping[str, str]) -> None:
        """Have the broker do something; see :data:`.Order`."""
        from ...server.metrics._http_exchange import Refused

        await trio.lowlevel.checkpoint()
        order = self._metrics.orders.get(path)
        if order is None:
            raise NoSuchListError(WITHOUT_LIST["faults"])
        try:
            order(parameters)
        except Refused as error:
            raise MetricsPagesError(str(error)) from error


class MetricsPagesError(TrionetError):
    """Raised when a metrics listener rejects a request or returns an invalid response."""


class NoSuchListError(MetricsPagesError):
    """Raised when a broker does not have a list, or an action."""


@attrs.frozen
class ListPage:
    """A page of a list in JSON; see :mod:`trionet.server.metrics._metrics_pages`."""

    total: int
    rows: tuple[Mapping[str, Any], ...]
    next: int | None


_page: Final = row_factory(ListPage)


class MetricsListenerReader:
    """A :class:`.SnapshotReader` for a metrics listener, over HTTP or HTTPS.

    Args:
        client: the client for the listener.
    """

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    async def take(self) -> BrokerSnapshot:
        return from_json(await self._page("/snapshot?limit=1"))

    async def rows(self, section: str) -> tuple[Sequence[Mapping[str, Any]], int]:
        rows: list[Mapping[str, Any]] = []
        limit = ROWS_PER_PAGE
        before: float = math.inf
        while True:
            path = f"/snapshot/{section}?limit={limit}"
            if before != math.inf:
                path += f"&before={before}"
            try:
                page = _page(await self._page(path))
            except ResponseTooLargeError:
                if limit == 1:
                    raise
                limit = max(1, limit // FEWER_ROWS)
                continue
            rows += page.rows
            if page.next is None or not page.rows or len(rows) >= ROWS_MAX:
                return rows, page.total
            if page.next >= before:
                raise MetricsPagesError("the pages of a list must have descending numbers")
            before = page.next

    async def requests(self, connection: str, count_max: int) -> Sequence[Mapping[str, Any]]:
        id = quote(connection, safe="")
        path = f"/snapshot/requests?connection={id}&limit={count_max}"
        return list(_page(await self._page(path)).rows)

    async def close_connection(self, id: str) -> bool:
        """Close a connection, and return whether it existed.

        Raises:
            MetricsPagesError: the listener has no token or a different token.
            OSError: the listener could not be reached.
        """
        status, body = await self._client.request(
            "POST", f"/connections/close?id={quote(id, safe='')}"
        )
        if status == 404:
            return False
        self._check(status, body)
        return True

    async def order(self, path: str, parameters: Mapping[str, str]) -> None:
        """Have the broker do something; see :data:`.Order`."""
        status, body = await self._client.request("POST", f"{path}?{urlencode(parameters)}")
        if status == HTTPStatus.NOT_FOUND:
            raise NoSuchListError(WITHOUT_LIST["faults"])
        self._check(status, body)

    async def _page(self, path: str) -> dict[str, Any]:
        status, body = await self._client.request("GET", path, PAGE_BYTES_MAX)
        self._check(status, body)
        try:
            found = json.loads(body)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict) or found.get("version") != VERSION:
            raise MetricsPagesError("not a metrics listener of a trionet broker")
        return found

    def _check(self, status: int, body: bytes) -> None:
        if status == 200:
            return
        why = body.decode("utf-8", "replace").strip()[:200]
        if status == 401:
            why = "a token is required (metrics.listener.token)"
        kind = NoSuchListError if status == HTTPStatus.NOT_FOUND else MetricsPagesError
        raise kind(f"HTTP status {status}: {why}")
