"""A source that feeds a model, for tests: wait until the model knows something."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import trio

from trionet.dashboard.model._model import Model
from trionet.dashboard.sources._source import Part

#: How often a source looks in tests, in seconds.
INTERVAL_SECONDS = 0.05


class Watching:
    """What a source has told.

    Args:
        model: that is fed.

    Attributes:
        model: the same.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self._changed = trio.Event()

    def changed(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    async def until(self, knows: Callable[[Model], object], seconds: float = 10) -> Model:
        """Wait until the model knows something; the test fails if that takes too long."""
        with trio.fail_after(seconds):
            while not knows(self.model):
                await self._changed.wait()
        return self.model


@asynccontextmanager
async def watching(
    source: Part, interval_seconds: float = INTERVAL_SECONDS
) -> AsyncIterator[Watching]:
    """A model that a source feeds for the length of the block."""
    found = Watching(Model())
    source.interval_seconds = interval_seconds
    async with trio.open_nursery() as nursery:
        found.model.changed = found.changed
        await nursery.start(source.run, found.model)
        yield found
        nursery.cancel_scope.cancel()
