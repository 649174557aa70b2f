"""The demo in the dashboard, with pages of its own in front of the others."""

from __future__ import annotations

import trionet
from demo.delays_view import DelaysView
from demo.flights_view import FlightsView
from demo.front import PlainLines, Shown
from trionet.dashboard._app import DashboardSettings, run_dashboard
from trionet.dashboard.sources._open_source import watch_broker
from trionet.dashboard.ui._view import View
from trionet.dashboard.views import all_views

#: How often the dashboard looks at first; its keys + and - change it.
REFRESH_SECONDS = 0.5


class OnDashboard:
    """The dashboard, with pages of the demo's own in front.

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
                await run_dashboard(source, settings, [*own_views(story), *all_views()])
        except OSError:
            # As after `su`, which leaves a terminal that cannot be opened by its name.
            await PlainLines().run(story)


def own_views(story: Shown) -> list[View]:
    """The demo's own pages; that of Spark's delays only if they were asked for."""
    delays = [DelaysView(story.analysis)] if story.analysis.is_shown else []
    return [FlightsView(story), *delays]
