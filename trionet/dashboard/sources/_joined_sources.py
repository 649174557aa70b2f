"""Sources made of several parts, and parts whose modules are slow to import."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Protocol

import attrs
import trio

from ..model._model import Model
from ._actions import Actions
from ._source import INTERVAL_SECONDS, INTERVAL_SECONDS_MAX, INTERVAL_SECONDS_MIN


class Part(Protocol):
    """A source for a part of the model. See :class:`.Source` for the members."""

    interval_seconds: float

    async def run(
        self,
        model: Model,
        changed: Callable[[], None],
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None: ...

    def focus(self, section: str | None, key: object = None) -> None: ...


class JoinedSource:
    """A :class:`.Source` made of several parts.

    Args:
        name: the name of the broker or cluster.
        parts: the sources of the parts.
        actions: the available operations.
        prepare: called with the model before any part runs, to mark data that no part can read.
    """

    def __init__(
        self,
        name: str,
        parts: Sequence[Part],
        actions: Actions,
        prepare: Callable[[Model], None] = lambda model: None,  # noqa: ARG005 - nothing to prepare
    ) -> None:
        self.name = name
        self.actions = actions
        self._parts = parts
        self._prepare = prepare
        self._interval_seconds = INTERVAL_SECONDS

    @property
    def interval_seconds(self) -> float:
        """The interval between reads in seconds, clamped to the allowed range when set."""
        return self._interval_seconds

    @interval_seconds.setter
    def interval_seconds(self, seconds: float) -> None:
        seconds = min(max(seconds, INTERVAL_SECONDS_MIN), INTERVAL_SECONDS_MAX)
        self._interval_seconds = seconds
        for part in self._parts:
            part.interval_seconds = seconds

    def focus(self, section: str | None, key: object = None) -> None:
        """Select the data to show; see :meth:`.Source.focus`."""
        for part in self._parts:
            part.focus(section, key)

    async def run(
        self,
        model: Model,
        changed: Callable[[], None],
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Update the model until cancelled; see :class:`.Source`."""
        model.about = attrs.evolve(model.about, source=self.name)
        self._prepare(model)
        async with trio.open_nursery() as nursery:
            async with trio.open_nursery() as starting:
                for part in self._parts:
                    starting.start_soon(_start, nursery, part, model, changed)
            task_status.started()


async def _start(
    nursery: trio.Nursery, part: Part, model: Model, changed: Callable[[], None]
) -> None:
    await nursery.start(part.run, model, changed, name=type(part).__name__)


class DeferredSource:
    """A :class:`Part` that is created when it runs, or when it is first shown.

    Args:
        module: the module of the part, in this package.
        name: the class of the part.
        keywords: the keyword arguments for the class.
        sections: the sections that cause the part to be created when they are shown; empty to
            create the part as soon as it runs.
    """

    def __init__(
        self,
        module: str,
        name: str,
        keywords: Mapping[str, object],
        sections: Collection[str] = (),
    ) -> None:
        self._make = partial(_load, module, name, keywords)
        self._sections = sections
        self._is_needed = trio.Event()
        self._interval_seconds = INTERVAL_SECONDS
        self._focus: tuple[str | None, object] = (None, None)
        self._part: Part | None = None

    @property
    def interval_seconds(self) -> float:
        """The interval between reads in seconds."""
        return self._interval_seconds

    @interval_seconds.setter
    def interval_seconds(self, seconds: float) -> None:
        self._interval_seconds = seconds
        if self._part is not None:
            self._part.interval_seconds = seconds

    def focus(self, section: str | None, key: object = None) -> None:
        """Select the data to show; see :meth:`.Source.focus`."""
        self._focus = section, key
        if section in self._sections:
            self._is_needed.set()
        if self._part is not None:
            self._part.focus(section, key)

    async def run(  # noqa: ASYNC128 - the loaded part reports when it has started
        self,
        model: Model,
        changed: Callable[[], None],
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Update the model until cancelled; see :class:`.Source`."""
        if self._sections:
            task_status.started()
            await self._is_needed.wait()
        part = self._part = await trio.to_thread.run_sync(self._make)
        part.interval_seconds = self._interval_seconds
        part.focus(*self._focus)
        async with trio.open_nursery() as nursery:
            await nursery.start(part.run, model, changed)
            if not self._sections:
                task_status.started()


def _load(module: str, name: str, keywords: Mapping[str, object]) -> Part:
    make: Callable[..., Part] = getattr(import_module(f"{__package__}.{module}"), name)
    return make(**keywords)
