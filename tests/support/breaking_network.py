"""A network whose poller fails."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from trionet.net.wire._readiness import EVENTS_MAX, ReadinessKind
from trionet.testing import MemoryNetwork
from trionet.testing.memory._readiness import MemoryReadiness


class BreakingNetwork(MemoryNetwork):
    """Its readiness fails when it is told to.

    Attributes:
        failures: so many of its polls fail from now on.
    """

    failures = 0.0

    @asynccontextmanager
    async def open_readiness(self, kind: ReadinessKind | None) -> AsyncIterator[MemoryReadiness]:
        async with super().open_readiness(kind) as readiness:
            poll = readiness.poll

            def maybe_poll(events_max: int = EVENTS_MAX) -> list[tuple[int, int]]:
                if self.failures > 0:
                    self.failures -= 1
                    raise OSError("the poller has failed")
                return poll(events_max)

            readiness.poll = maybe_poll  # type: ignore[method-assign]
            yield readiness
