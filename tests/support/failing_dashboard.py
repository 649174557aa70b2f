"""A dashboard of which a view fails on a narrow screen, and the source when it is woken.

As a program, with the arguments of ``trionet dashboard``: it is the view that is shown first.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from typing import Final

import trio

from trionet.cli._dashboard import add_arguments, open_source
from trionet.dashboard._app import DashboardSettings, run_dashboard
from trionet.dashboard.drawing._cells import Line, Pen
from trionet.dashboard.model._model import Model
from trionet.dashboard.sources._source import Source, Started
from trionet.dashboard.ui._view import View
from trionet.dashboard.views import VIEWS

#: A screen with fewer columns is too narrow.
COLUMNS_MIN: Final = 100


class Hurried:
    """A source that fails when it is to look more often than at first.

    Args:
        source: what feeds the model until then.
    """

    def __init__(self, source: Source) -> None:
        self.name = source.name
        self.actions = source.actions
        self._source = source
        self._first_seconds = source.interval_seconds
        self._is_hurried = trio.Event()

    @property
    def interval_seconds(self) -> float:
        return self._source.interval_seconds

    @interval_seconds.setter
    def interval_seconds(self, seconds: float) -> None:
        self._source.interval_seconds = seconds
        if seconds < self._first_seconds:
            self._is_hurried.set()

    def focus(self, section: str | None, key: object = None) -> None:
        self._source.focus(section, key)

    async def run(self, model: Model, *, task_status: Started = trio.TASK_STATUS_IGNORED) -> None:
        async with trio.open_nursery() as nursery:
            await nursery.start(self._source.run, model)
            task_status.started()
            await self._is_hurried.wait()
            raise ValueError("a source that fails")


def narrow(view: type[View]) -> View:
    """A view that fails on a narrow screen."""

    def summary(self: View, model: Model, pen: Pen) -> Iterable[Line]:
        if pen.width < COLUMNS_MIN:
            raise ValueError(f"{self.name} cannot be so narrow")
        return view.summary(self, model, pen)

    made: View = type(view.__name__, (view,), {"summary": summary})()
    return made


async def main(arguments: argparse.Namespace) -> int:
    """Show it until the user leaves, or until it fails."""
    views = [narrow(view) if view.name == arguments.view else view() for view in VIEWS]
    async with open_source(arguments) as source:
        return await run_dashboard(Hurried(source), DashboardSettings(view=arguments.view), views)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    sys.exit(trio.run(main, parser.parse_args()))
