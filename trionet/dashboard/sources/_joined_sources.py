"""Several sources as one; each updates a part of the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import attrs
import trio

from ..model._model import Model
from . import INTERVAL_SECONDS, INTERVAL_SECONDS_MAX, INTERVAL_SECONDS_MIN
from ._actions import Actions


class Part(Protocol):
    """A source of a part of the model; the members are those of :class:`.Source`."""

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
    """A :class:`.Source` made of parts.

    Args:
        name: what they read.
        parts: the sources of parts.
        actions: the operations that are possible there.
        prepare: called with the model first, to record what no part can read.
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
        """How often the parts read; set values are limited to the allowed range."""
        return self._interval_seconds

    @interval_seconds.setter
    def interval_seconds(self, seconds: float) -> None:
        seconds = min(max(seconds, INTERVAL_SECONDS_MIN), INTERVAL_SECONDS_MAX)
        self._interval_seconds = seconds
        for part in self._parts:
            part.interval_seconds = seconds

    def focus(self, section: str | None, key: object = None) -> None:
        """See :meth:`.Source.focus`."""
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
