"""Where the dashboard's knowledge comes from: a broker in this process, its pages, its cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

import trio

from ..actions import Actions
from ..model import Model

#: How often a source looks, in seconds, unless it is told otherwise.
INTERVAL_SECONDS: Final = 1.0
#: The shortest and the longest interval that can be asked for.
INTERVAL_SECONDS_MIN: Final = 0.2
INTERVAL_SECONDS_MAX: Final = 60.0


class Source(Protocol):
    """What feeds a model.

    Attributes:
        name: whom it is about, such as ``PLAINTEXT://127.0.0.1:9092``.
        interval_seconds: how often it looks; may be changed at any time.
        actions: what can be done there.
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
        """Feed the model until cancelled.

        Reports ``started`` when the first of it is there, or is known to be refused. What fails
        later is told in the model, and tried again.

        Args:
            model: to be fed.
            changed: called after each change of the model.
            task_status: of :meth:`trio.Nursery.start`.
        """
        ...

    def focus(self, section: str | None, key: object = None) -> None:
        """Say what is looked at: what costs much is read only then.

        Args:
            section: a list of the model, by the name of its attribute; ``group`` for the members
                and the lag of one group; None if the overview is enough.
            key: which topic, group or partition.
        """
        ...
