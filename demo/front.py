"""Where the demo shows itself: the dashboard on a terminal, plain lines everywhere else."""

from __future__ import annotations

import errno
import sys
from typing import Protocol

import trio

import trionet
from demo.flights_view import FlightsView, Shown
from demo.lines import group_line, plain_line
from trionet.dashboard.app import run_dashboard
from trionet.dashboard.settings import DashboardSettings
from trionet.dashboard.sources.opening import watch_broker
from trionet.dashboard.tty import is_interactive
from trionet.dashboard.views import all_views

PLAIN_SECONDS = 1.0
#: How often the dashboard looks at first; its keys + and - change it.
REFRESH_SECONDS = 0.5


class Front(Protocol):
    """Shows a story."""

    async def run(self, story: Shown) -> None:
        """Show it until cancelled, or until the user has seen enough."""
        ...


class PlainLines:
    """A line a second on standard output, and more when something has happened."""

    async def run(self, story: Shown) -> None:
        lines = [story.title]
        told: list[str] = []
        divided = ""
        while True:
            await trio.sleep(PLAIN_SECONDS)
            figures = story.figures
            assert figures is not None, "they come sooner than the first line"
            lines.append(plain_line(figures))
            if figures.is_divided(story.partitions) and (text := group_line(figures)) != divided:
                lines.append(f"         {text}")
                divided = text
            if (news := story.analysis.news()) != told:
                lines += [f"         {line}" for line in news]
                told = news
            # In a thread: whoever reads the pipe may be slow.
            await trio.to_thread.run_sync(_write, "".join(f"{line}\n" for line in lines))
            lines = []


def _write(text: str) -> None:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        if error.errno == errno.EIO:  # the terminal has gone: nobody reads that, either
            raise BrokenPipeError(*error.args) from error
        raise


class OnDashboard:
    """The dashboard, with a page of the demo's own in front.

    Args:
        broker: the one that is shown.
        pipeline_topic: of the results of the telemetry pipeline, if it runs.
    """

    def __init__(self, broker: trionet.Broker, pipeline_topic: str | None = None) -> None:
        self._broker = broker
        self._pipeline_topic = pipeline_topic

    async def run(self, story: Shown) -> None:
        settings = DashboardSettings(view=FlightsView.name, refresh_seconds=REFRESH_SECONDS)
        try:
            with watch_broker(self._broker, pipeline_topic=self._pipeline_topic) as source:
                await run_dashboard(source, settings, [FlightsView(story), *all_views()])
        except OSError:
            # As after `su`, which leaves a terminal that cannot be opened by its name.
            await PlainLines().run(story)


def front_for(broker: trionet.Broker, pipeline_topic: str | None = None) -> Front:
    """The dashboard if there is a terminal with somebody in front of it, else plain lines."""
    return OnDashboard(broker, pipeline_topic) if is_interactive() else PlainLines()
