"""Reads the metrics of a broker in this process, without HTTP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import trio

from ...broker.telemetry._broker_metrics import BrokerMetrics
from ..model._snapshot import BrokerSnapshot, from_snapshot

#: How many rows are read before other tasks run: about a millisecond.
ROWS_PER_STEP: Final = 100


class InProcessReader:
    """Reads what ``/snapshot`` would contain (:class:`.SnapshotReader`).

    Args:
        metrics: of the broker (:meth:`trionet.Broker.watch`).
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
            before = page.rows[-1]["number"]  # type: ignore[assignment] # it is one

    async def close_connection(self, id: str) -> bool:
        """Close a connection. Returns whether it existed."""
        await trio.lowlevel.checkpoint()
        return self._metrics.close_connection(id)
