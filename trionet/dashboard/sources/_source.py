"""The interface of sources, which read a broker or a cluster into the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

import trio

from ..model._model import Model
from ._actions import Actions

#: The default interval between reads, in seconds.
INTERVAL_SECONDS: Final = 1.0
#: The minimum and the maximum interval between reads, in seconds.
INTERVAL_SECONDS_MIN: Final = 0.2
INTERVAL_SECONDS_MAX: Final = 60.0


class Source(Protocol):
    """A source of data for a model.

    Attributes:
        name: the name of the broker or cluster, such as ``PLAINTEXT://127.0.0.1:9092``.
        interval_seconds: the interval between reads in seconds, which may change at any time.
        actions: the available operations.
    """

    name: str
    interval_seconds: float
    actions: Actions

    async def run(
        self,
        model: Model,
        changed: Callable[[], None],
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Update the model until cancelled.

        Reports ``started`` after the first read, even if the read failed. Failures are
        recorded in the model, and reads are retried.

        Args:
            model: the model to update.
            changed: called after each change to the model.
            task_status: passed by :meth:`trio.Nursery.start`.
        """
        ...

    def focus(self, section: str | None, key: object = None) -> None:
        """Select the data to show. Expensive data is read only while it is shown.

        Args:
            section: the name of a section of the model, or ``group`` for the members and the lag of
                one group; None for the overview.
            key: the topic, group or partition.
        """
        ...
