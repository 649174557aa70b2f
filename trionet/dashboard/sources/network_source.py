"""A broker's network layer, from whoever tells of it: numbers always, a list while it is shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import trio

from ...errors import TrionetError
from ..model import Model
from ..readings import MALFORMED, BrokerSnapshot
from . import INTERVAL_SECONDS

#: The lists that a broker tells, by the section of the model that is looked at.
LISTS: Final[Mapping[str, str]] = {
    "connections": "connections",
    "closed": "recently_closed",
    "fetch_sessions": "fetch_sessions",
    "groups": "groups",
    "group": "groups",
    "log": "log",
}
#: What a row of a list costs who tells it and who reads it, in seconds of a processor, about.
ROW_SECONDS: Final = 30e-6
#: The share of the time that reading a list may take, in this process or in the broker's.
LIST_SHARE: Final = 0.02
#: So many rows are made before others have their turn on the loop: about a millisecond.
ROWS_PER_STEP: Final = 100
_UNREADABLE: Final = (TrionetError, OSError, trio.BrokenResourceError)


class SnapshotReader(Protocol):
    """Who tells of a broker's network layer."""

    async def take(self) -> BrokerSnapshot:
        """What it is now.

        Raises:
            TrionetError: it could not be asked, or is none.
            OSError: the same.
        """
        ...

    async def rows(self, section: str) -> tuple[Sequence[Mapping[str, Any]], int]:
        """A whole list, the newest row first, and how many rows there are."""
        ...


class NetworkSource:
    """Feeds a model from a reader.

    Args:
        reader: who is asked.
        what: what it is, for messages, such as ``http://127.0.0.1:9404``.
    """

    def __init__(self, reader: SnapshotReader, what: str) -> None:
        self.interval_seconds = INTERVAL_SECONDS
        self._reader = reader
        self._what = what
        self._wanted: str | None = None
        self._wake = trio.Event()
        self._list_from = 0.0

    def focus(self, section: str | None, key: object = None) -> None:  # noqa: ARG002 - Source
        """See :class:`.Source`."""
        wanted = None if section is None else LISTS.get(section)
        if wanted != self._wanted:
            self._wanted, self._list_from = wanted, 0.0
            self._wake.set()

    async def run(
        self,
        model: Model,
        changed: Callable[[], None],
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Feed the model until cancelled; see :class:`.Source`."""
        is_started = was_told = False
        heard = trio.current_time()
        while True:
            began = trio.current_time()
            self._wake = trio.Event()
            try:
                trouble = await self._look(model)
            except (*_UNREADABLE, *MALFORMED) as error:
                why = f"{self._what} could not be read: {_said(error)}"
                model.set_alarm(self._what, why, heard)
                if was_told:
                    model.mark_network_failed(why)
                else:
                    model.mark_network_missing(why)
            else:
                was_told, heard = True, trio.current_time()
                model.set_alarm(self._what, trouble)
            changed()
            if not is_started:
                is_started = True
                task_status.started()
            with trio.move_on_at(began + self.interval_seconds):
                await self._wake.wait()

    async def _look(self, model: Model) -> str | None:
        """Look at the numbers and at a list; gives why the list could not be read."""
        model.update_network(await self._reader.take(), trio.current_time())
        wanted = self._wanted
        if wanted is None or trio.current_time() < self._list_from:
            return None
        try:
            await self._read_list(model, wanted)
        except (*_UNREADABLE, *MALFORMED) as error:
            why = f"{wanted} of {self._what} could not be read: {_said(error)}"
            model.mark_list_failed(wanted, why)
            return why
        return None

    async def _read_list(self, model: Model, wanted: str) -> None:
        rows, total = await self._reader.rows(wanted)
        made: dict[int, Any] = {}
        for first in range(0, len(rows), ROWS_PER_STEP):
            part = rows[first : first + ROWS_PER_STEP]
            if wanted == "groups":
                model.update_group_internals(part, trio.current_time())
            else:
                made |= model.make_rows(wanted, part)
            await trio.lowlevel.checkpoint()
        if wanted == "groups":
            model.retain_group_internals({row["id"] for row in rows}, trio.current_time())
        else:
            model.replace_rows(wanted, made, total, trio.current_time())
        if wanted != self._wanted:
            return  # another list is looked at, which does not rest for this one
        # Not what the clock says: on a busy machine most of it is waiting, and costs nobody.
        spent = len(rows) * ROW_SECONDS
        self._list_from = trio.current_time() + spent / LIST_SHARE - self.interval_seconds / 2


def _said(error: Exception) -> str:
    """What an error tells a person."""
    if isinstance(error, _UNREADABLE):
        return str(error)
    return f"it has another form: {error!r}"
