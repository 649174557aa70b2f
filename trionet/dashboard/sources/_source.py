"""The interface of sources, which read a broker or a cluster and update the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

import trio

from ..model._model import Model
from ._actions import Actions

#: How often a source reads by default, in seconds.
INTERVAL_SECONDS: Final = 1.0
#: The shortest and the longest interval.
INTERVAL_SECONDS_MIN: Final = 0.2
INTERVAL_SECONDS_MAX: Final = 60.0


class Source(Protocol):
    """Updates a model until cancelled.

    Attributes:
        name: the name of the broker or cluster, such as ``PLAINTEXT://127.0.0.1:9092``.
        interval_seconds: the interval between reads in seconds; may be changed at any time.
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

        Reports ``started`` after the first read, successful or not. Later failures are recorded in
        the model, and the read is repeated.

        Args:
            model: the model to update.
            changed: called after each change of the model.
            task_status: reports the start to :meth:`trio.Nursery.start`.
        """
        ...

    def focus(self, section: str | None, key: object = None) -> None:
        """Select what is shown: expensive data is read only while it is shown.

        Args:
            section: a section of the model, by the name of its attribute; ``group`` for the members
                and the lag of one group; None if the overview is enough.
            key: the topic, group or partition.
        """
        ...
