"""A source that takes its time to load: it is loaded in a thread, while the loop goes on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from importlib import import_module

import trio

from ..model import Model
from . import INTERVAL_SECONDS
from .joined import Part


class DeferredSource:
    """A part (:class:`.joined.Part`) that is made when it is run, or first looked at.

    Args:
        module: of this folder.
        name: of the class in it.
        keywords: it is made with.
        sections: it tells nothing but these, of which nobody has to know before they are looked at;
            empty if it is made at once.
    """

    def __init__(
        self,
        module: str,
        name: str,
        keywords: Mapping[str, object],
        sections: Collection[str] = (),
    ) -> None:
        self._make = partial(_made, module, name, keywords)
        self._sections = sections
        self._is_asked = trio.Event()
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

    def focus(self, section: str | None, key: object = None) -> None:
        """See :class:`.Source`."""
        self._wanted = section, key
        if section in self._sections:
            self._is_asked.set()
        if self._part is not None:
            self._part.focus(section, key)

    async def run(  # noqa: ASYNC128 - what was loaded calls it
        self,
        model: Model,
        changed: Callable[[], None],
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Feed the model until cancelled; see :class:`.Source`."""
        if self._sections:
            task_status.started()
            await self._is_asked.wait()
        part = self._part = await trio.to_thread.run_sync(self._make)
        part.interval_seconds = self._interval_seconds
        part.focus(*self._wanted)
        async with trio.open_nursery() as nursery:
            await nursery.start(part.run, model, changed)
            if not self._sections:
                task_status.started()


def _made(module: str, name: str, keywords: Mapping[str, object]) -> Part:
    make: Callable[..., Part] = getattr(import_module(f"{__package__}.{module}"), name)
    return make(**keywords)
