"""A source for a broker's network layer: figures in each read, and a list while it is shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import trio

from ...errors import TrionetError
from ..model._model import Model
from ..model._snapshot import MALFORMED
from ._snapshot_readers import SnapshotReader
from ._source import INTERVAL_SECONDS

#: The lists of ``/snapshot``, keyed by the section of the model that is shown.
LISTS: Final[Mapping[str, str]] = {
    "connections": "connections",
    "closed": "recently_closed",
    "fetch_sessions": "fetch_sessions",
    "groups": "groups",
    "group": "groups",
    "log": "log",
}
#: The approximate CPU time per row of a list in the broker and the dashboard, in seconds.
ROW_SECONDS: Final = 30e-6
#: The maximum share of time for reading a list, in this process or the broker's process.
LIST_SHARE: Final = 0.02
#: The number of rows to convert before other tasks run, about a millisecond of work.
ROWS_PER_STEP: Final = 100
_UNREADABLE: Final = (TrionetError, OSError, trio.BrokenResourceError)


class NetworkSource:
    """A :class:`.Part` that reads the snapshots of a broker.

    Args:
        reader: reads the snapshots.
        what: the name of the broker in messages, such as ``http://127.0.0.1:9404``.
    """

    def __init__(self, reader: SnapshotReader, what: str) -> None:
        self.interval_seconds = INTERVAL_SECONDS
        self._reader = reader
        self._what = what
        self._list: str | None = None
        self._wake = trio.Event()
        self._list_due_at = 0.0

    def focus(self, section: str | None, key: object = None) -> None:  # noqa: ARG002 - Source
        """Select the data to show; see :meth:`.Source.focus`."""
        name = None if section is None else LISTS.get(section)
        if name != self._list:
            self._list, self._list_due_at = name, 0.0
            self._wake.set()

    async def run(
        self,
        model: Model,
        changed: Callable[[], None],
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Update the model until cancelled; see :class:`.Source`."""
        is_started = has_succeeded = False
        succeeded_at = trio.current_time()
        while True:
            began = trio.current_time()
            self._wake = trio.Event()
            try:
                problem = await self._read(model)
            except (*_UNREADABLE, *MALFORMED) as error:
                why = f"{self._what} could not be read: {_reason(error)}"
                model.set_alarm(self._what, why, succeeded_at)
                if has_succeeded:
                    model.mark_network_failed(why)
                else:
                    model.mark_network_missing(why)
            else:
                has_succeeded, succeeded_at = True, trio.current_time()
                model.set_alarm(self._what, problem)
            changed()
            if not is_started:
                is_started = True
                task_status.started()
            with trio.move_on_at(began + self.interval_seconds):
                await self._wake.wait()

    async def _read(self, model: Model) -> str | None:
        """Read the figures and the list, and return why the list could not be read, or None."""
        model.update_network(await self._reader.take(), trio.current_time())
        name = self._list
        if name is None or trio.current_time() < self._list_due_at:
            return None
        try:
            await self._read_list(model, name)
        except (*_UNREADABLE, *MALFORMED) as error:
            why = f"{name} of {self._what} could not be read: {_reason(error)}"
            model.mark_list_failed(name, why)
            return why
        return None

    async def _read_list(self, model: Model, name: str) -> None:
        rows, total = await self._reader.rows(name)
        converted: dict[int, Any] = {}
        for first in range(0, len(rows), ROWS_PER_STEP):
            part = rows[first : first + ROWS_PER_STEP]
            if name == "groups":
                model.update_group_internals(part, trio.current_time())
            else:
                converted |= model.make_rows(name, part)
            await trio.lowlevel.checkpoint()
        if name == "groups":
            model.retain_group_internals({row["id"] for row in rows}, trio.current_time())
        else:
            model.replace_rows(name, converted, total, trio.current_time())
        if name != self._list:
            return  # another list is shown by now, and is read without a pause
        # An estimate rather than measured time, most of which is waiting on a busy machine.
        spent = len(rows) * ROW_SECONDS
        self._list_due_at = trio.current_time() + spent / LIST_SHARE - self.interval_seconds / 2


def _reason(error: Exception) -> str:
    """Return a description of the error for the user."""
    if isinstance(error, _UNREADABLE):
        return str(error)
    return f"unknown format: {error!r}"
