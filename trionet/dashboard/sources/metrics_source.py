"""A broker's metrics listener tells of it: ``/snapshot`` over HTTP or HTTPS."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from ...errors import TrionetError
from ..readings import BrokerSnapshot, from_json
from .http_client import HttpClient

#: Rows of a page, as many as a listener gives.
ROWS_PER_PAGE: Final = 500
#: The version of ``/snapshot`` that is understood here.
VERSION: Final = 1


class MetricsPagesError(TrionetError):
    """A metrics listener said something else than what was asked for."""


class MetricsListenerReader:
    """Tells what ``/snapshot`` says; see :class:`.network_source.SnapshotReader`.

    Args:
        client: connects to the listener.
    """

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    async def take(self) -> BrokerSnapshot:
        page = await self._page("/snapshot?limit=1")
        if not isinstance(page.get("now"), int | float):
            raise MetricsPagesError("its snapshot does not tell of which moment it is")
        return from_json(page)

    async def rows(self, section: str) -> tuple[Sequence[Mapping[str, Any]], int]:
        rows: list[Mapping[str, Any]] = []
        path = f"/snapshot/{section}?limit={ROWS_PER_PAGE}"
        following = ""
        while True:
            page = await self._page(path + following)
            rows += page["rows"]
            if page["next"] is None:
                return rows, page["total"]
            following = f"&before={page['next']}"

    async def close_connection(self, id: str) -> bool:
        """Close a connection; whether it was there.

        Raises:
            MetricsPagesError: the listener has no token, or not ours.
            OSError: it could not be reached.
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
            raise MetricsPagesError("this is no metrics listener of a trionet broker")
        return found

    def _check(self, status: int, body: bytes) -> None:
        if status == 200:
            return
        why = body.decode("utf-8", "replace").strip()[:200]
        if status == 401:
            why = "it wants its token (metrics.listener.token)"
        raise MetricsPagesError(f"status {status}: {why}")
