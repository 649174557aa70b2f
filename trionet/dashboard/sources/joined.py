"""Several sources as one: each tells a part of the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import attrs
import trio

from ..actions import Actions
from ..model import Model
from . import INTERVAL_SECONDS, INTERVAL_SECONDS_MAX, INTERVAL_SECONDS_MIN


class Part(Protocol):
    """A source of a part; see :class:`.Source` for what the parts of it mean."""

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
    """A source of parts (:class:`.Source`).

    Args:
        name: whom they are about.
        parts: what feeds the model.
        actions: what can be done there.
        prepare: told the model before anything feeds it, such as what no part can tell.
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
        """How often the parts look; what is not allowed becomes the nearest that is."""
        return self._interval_seconds

    @interval_seconds.setter
    def interval_seconds(self, seconds: float) -> None:
        seconds = min(max(seconds, INTERVAL_SECONDS_MIN), INTERVAL_SECONDS_MAX)
        self._interval_seconds = seconds
        for part in self._parts:
            part.interval_seconds = seconds

    def focus(self, section: str | None, key: object = None) -> None:
        """See :class:`.Source`."""
        for part in self._parts:
            part.focus(section, key)

    async def run(
        self,
        model: Model,
        changed: Callable[[], None],
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Feed the model until cancelled; see :class:`.Source`."""
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
