"""Readers of a broker's ``/snapshot``, in this process or over HTTP and HTTPS."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import quote

import trio

from ...errors import TrionetError
from ..model._snapshot import BrokerSnapshot, from_json, from_snapshot
from ._http_client import HttpClient

if TYPE_CHECKING:
    from ...broker.telemetry._broker_metrics import BrokerMetrics

#: The number of rows to read before other tasks run, about a millisecond of work.
ROWS_PER_STEP: Final = 100
#: The number of rows per page, the maximum that a listener returns.
ROWS_PER_PAGE: Final = 500
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
        page_of = self._metrics.sections[section]
        rows: list[Mapping[str, Any]] = []
        before: int | None = None
        while True:
            await trio.lowlevel.checkpoint()
            page = page_of(ROWS_PER_STEP, before)
            rows += page.rows
            if len(page.rows) < ROWS_PER_STEP:
                return rows, page.total
            before = page.rows[-1]["number"]  # type: ignore[assignment] # an int

    async def close_connection(self, id: str) -> bool:
        """Close a connection, and return whether it existed."""
        await trio.lowlevel.checkpoint()
        return self._metrics.close_connection(id)


class MetricsPagesError(TrionetError):
    """Raised when a metrics listener rejects a request or returns an invalid response."""


class MetricsListenerReader:
    """A :class:`.SnapshotReader` for a metrics listener, over HTTP or HTTPS.

    Args:
        client: the client for the listener.
    """

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    async def take(self) -> BrokerSnapshot:
        page = await self._page("/snapshot?limit=1")
        if not isinstance(page.get("now"), int | float):
            raise MetricsPagesError("the snapshot does not contain its time (now)")
        return from_json(page)

    async def rows(self, section: str) -> tuple[Sequence[Mapping[str, Any]], int]:
        rows: list[Mapping[str, Any]] = []
        path = f"/snapshot/{section}?limit={ROWS_PER_PAGE}"
        before = ""
        while True:
            page = await self._page(path + before)
            rows += page["rows"]
            if page["next"] is None:
                return rows, page["total"]
            before = f"&before={page['next']}"

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

    async def _page(self, path: str) -> dict[str, Any]:
        status, body = await self._client.request("GET", path)
        self._check(status, body)
        try:
            found = json.loads(body)
        except ValueError:
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
        raise MetricsPagesError(f"HTTP status {status}: {why}")
