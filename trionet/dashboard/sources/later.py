"""A source that takes its time to load: it is loaded in a thread, while the loop goes on."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module

import trio

from ..model import Model
from . import INTERVAL_SECONDS
from .joined import Part


class Later:
    """A part (:class:`.joined.Part`) that is made when it is run.

    Args:
        module: of this folder.
        name: of the class in it.
        arguments: it is made with.
        keywords: the same.
    """

    def __init__(self, module: str, name: str, *arguments: object, **keywords: object) -> None:
        self._make = partial(_made, module, name, *arguments, **keywords)
        self._interval_seconds = INTERVAL_SECONDS
        self._wanted: tuple[str | None, object] = (None, None)
        self._part: Part | None = None

    @property
    def interval_seconds(self) -> float:
        """How often it looks."""
        return self._interval_seconds

    @interval_seconds.setter
    def interval_seconds(self, seconds: float) -> None:
        self._interval_seconds = seconds
        if self._part is not None:
            self._part.interval_seconds = seconds

    def want(self, section: str | None, key: object = None) -> None:
        """See :class:`.Source`."""
        self._wanted = section, key
        if self._part is not None:
            self._part.want(section, key)

    async def run(  # noqa: ASYNC128 - what was loaded calls it
        self,
        model: Model,
        changed: Callable[[], None],
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Feed the model until cancelled; see :class:`.Source`."""
        part = self._part = await trio.to_thread.run_sync(self._make)
        part.interval_seconds = self._interval_seconds
        part.want(*self._wanted)
        async with trio.open_nursery() as nursery:
            await nursery.start(part.run, model, changed)
            task_status.started()


def _made(module: str, name: str, *arguments: object, **keywords: object) -> Part:
    make: Callable[..., Part] = getattr(import_module(f"{__package__}.{module}"), name)
    return make(*arguments, **keywords)
