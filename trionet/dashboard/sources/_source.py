"""The interface of sources, which read a broker or a cluster into the model.

A source has several parts, some of which are slow to import. Long reads are paced: they consist of
small steps, so that other tasks can run between steps.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from importlib import import_module
from time import thread_time
from typing import Final, Protocol

import attrs
import trio

from ..._util._logging import get_logger
from ..._util._raising import raise_single_error
from ...errors import ConfigError
from ..model._model import Model
from ._actions import Actions

logger = get_logger("trionet.dashboard")

#: The default interval between reads, in seconds.
INTERVAL_SECONDS: Final = 1.0
#: The minimum and the maximum interval between reads, in seconds.
INTERVAL_SECONDS_MIN: Final = 0.2
INTERVAL_SECONDS_MAX: Final = 60.0

#: The back-off after a part has failed, in seconds.
RESTART_SECONDS: Final = 5.0

Started = trio.TaskStatus[None]
"""Reports that a source has started."""


class Part(Protocol):
    """A source of data for a part of the model.

    Attributes:
        interval_seconds: the interval between reads in seconds, which may change at any time.
    """

    interval_seconds: float

    async def run(self, model: Model, *, task_status: Started = trio.TASK_STATUS_IGNORED) -> None:
        """Update the model until cancelled.

        Reports ``started`` after the first read, even if the read failed. Failures are
        recorded in the model, and reads are retried.

        Args:
            model: the model to update.
            task_status: passed by :meth:`trio.Nursery.start`.
        """
        ...

    def focus(self, section: str | None, key: object = None) -> None:
        """Select the data to show. Expensive data is read only while it is shown.

        Args:
            section: the name of a section of the model, ``group`` for the members and the lag of
                one group, or ``overview``; None for data that is always read.
            key: the topic, group or partition.
        """
        ...


class Source(Part, Protocol):
    """A source of all data of the model.

    Attributes:
        name: the name of the broker or cluster, such as ``PLAINTEXT://127.0.0.1:9092``.
        actions: the available operations.
    """

    name: str
    actions: Actions


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

    async def run(self, model: Model, *, task_status: Started = trio.TASK_STATUS_IGNORED) -> None:
        """Update the model until cancelled; see :class:`.Source`."""
        model.about = attrs.evolve(model.about, source=self.name)
        self._prepare(model)
        async with trio.open_nursery() as nursery:
            async with trio.open_nursery() as starting:
                for part in self._parts:
                    starting.start_soon(start_in, nursery, self._keep_running, part, model)
            task_status.started()

    async def _keep_running(self, part: Part, model: Model, *, task_status: Started) -> None:
        """Run a part, and again if it fails, so that the others go on.

        A part handles the errors that its reads are known to raise; this is for all others.

        Raises:
            ConfigError: the user's settings conflict with each other, or name a file that cannot be
                read, so that the part cannot start.
        """
        once = _Once(task_status)
        while True:
            try:
                with raise_single_error():
                    await part.run(model, task_status=once)
            except Exception as error:  # boundary: one part
                if isinstance(error, ConfigError) and not once.has_started:
                    raise
                what = type(part).__name__
                logger.exception("a part of the dashboard failed: %s", what)
                why = f"some data could not be read: {error!r}; see the log"
                model.set_alarm(what, why, trio.current_time())
            once.started()
            model.changed()
            await trio.sleep(RESTART_SECONDS)
            model.set_alarm(type(part).__name__, None)


class _Once:
    """A task status that may be reported again, by a part that is run again."""

    def __init__(self, task_status: Started) -> None:
        self._task_status = task_status
        self.has_started = False

    def started(self, value: None = None) -> None:
        if not self.has_started:
            self.has_started = True
            self._task_status.started(value)


async def start_in(
    nursery: trio.Nursery, task: Callable[..., Awaitable[None]], *arguments: object
) -> None:
    """Start a task in a nursery, and return when it has started."""
    await nursery.start(task, *arguments)


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
        self, model: Model, *, task_status: Started = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Update the model until cancelled; see :class:`.Source`."""
        if self._sections:
            task_status.started()
            await self._is_needed.wait()
        part = self._part = await trio.to_thread.run_sync(self._make)
        part.interval_seconds = self._interval_seconds
        part.focus(*self._focus)
        async with trio.open_nursery() as nursery:
            await nursery.start(part.run, model)
            if not self._sections:
                task_status.started()


def _load(module: str, name: str, keywords: Mapping[str, object]) -> Part:
    make: Callable[..., Part] = getattr(import_module(f"{__package__}.{module}"), name)
    return make(**keywords)


#: The maximum share of CPU time for reading if the user is not waiting.
SHARE: Final = 0.05
#: The maximum rest after a step, in seconds.
REST_SECONDS_MAX: Final = 1.0


class Pace:
    """The pace of a read, which rests after each step to limit its share of CPU time.

    The CPU time of other tasks on this thread counts, too, so that reads slow down on a busy loop.

    Args:
        share: the share of CPU time, 0 to 1; with 1, a rest is only a checkpoint.
        is_needed: returns whether the data is still needed, for the reader to check before a step.
    """

    def __init__(
        self,
        share: float = SHARE,
        is_needed: Callable[[], bool] = lambda: True,
    ) -> None:
        self._share = share
        self.is_needed = is_needed
        self._began = thread_time()

    def only_while(self, is_needed: Callable[[], bool]) -> Pace:
        """Return a pace like this one for data that is only needed while this is true, too."""
        return Pace(self._share, lambda: self.is_needed() and is_needed())

    def begin(self) -> None:
        """Begin a step."""
        self._began = thread_time()

    async def rest(self) -> None:
        """End a step, rest, and begin the next step."""
        spent = thread_time() - self._began
        rest = spent / self._share - spent
        await trio.sleep(min(rest, REST_SECONDS_MAX))
        self._began = thread_time()
