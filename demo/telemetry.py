"""What Spark makes of the broker's own request log, minute by minute, beside the replay."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import attrs
import trio

from demo.child import Child, ChildFailed, early_end, open_child
from demo.scratch import scratch_folder

#: The topics of the log and of its minutes; each has one partition.
LOG, RESULTS = "requests", "requests-results"
#: With this begins the line on the child's stderr that says why it has failed.
FAILED = "trionet pipeline: "


@attrs.define
class Telemetry:
    """The minutes as far as they are known; the dashboard's page of the pipeline has all of them.

    Attributes:
        is_shown: whether anything is said of it.
        obstacle: why there is none any more; else empty.
    """

    is_shown: bool = True
    obstacle: str = ""
    _child: Child | None = None
    _newest: tuple[str, int] | None = None

    @property
    def has_failed(self) -> bool:
        """Whether it has ended early."""
        return bool(self.obstacle)

    def lines(self) -> list[str]:
        """All there is to say now."""
        if not self.is_shown:
            return []
        where = "page 9 has the minutes of the broker's request log, each a while after it is over"
        return self.news() or [f"Telemetry by Spark: {where}"]

    def news(self) -> list[str]:
        """What changes no more than once a minute."""
        if self.obstacle:
            return [f"no telemetry by Spark: {self.obstacle}"]
        latest = self._child.latest if self._child is not None else {}
        # The last line of a job has how many minutes there were in all, under the same name.
        if latest.get("event") == "batch" and latest["windows"]:
            self._newest = max(latest["windows"].items())
        if self._newest is None:
            return []
        minute, requests = self._newest
        return [f"Telemetry by Spark: {requests:,} requests in the minute of {minute}"]

    async def run(self, bootstrap_servers: str, begun: Callable[[], Awaitable[None]]) -> None:
        """Run Spark until cancelled, or until it has ended."""
        await begun()
        try:
            with scratch_folder() as folder:
                arguments = [bootstrap_servers, LOG, RESULTS, folder]
                async with open_child("telemetry_job", *arguments, folder=folder) as child:
                    self._child = child
                    await trio.sleep_forever()
        except* ChildFailed as group:
            self.obstacle = early_end(group, FAILED)


@asynccontextmanager
async def open_telemetry(
    bootstrap_servers: str, begun: Callable[[], Awaitable[None]], *, is_wanted: bool
) -> AsyncIterator[Telemetry]:
    """Spark beside the block, at the broker's request log; it ends with the block.

    Args:
        bootstrap_servers: of the broker, whose ``request.log.topic`` is :data:`LOG`.
        begun: returns when there are flights.
        is_wanted: whether it is to run.
    """
    telemetry = Telemetry(is_shown=is_wanted)
    async with trio.open_nursery() as nursery:
        if is_wanted:
            nursery.start_soon(telemetry.run, bootstrap_servers, begun)
        yield telemetry
        nursery.cancel_scope.cancel(reason="the demo is over")
