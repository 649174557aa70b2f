"""Bugs planted on purpose: what the lives of logs must find, or they find nothing.

They need the modules as they are, not compiled.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sim.planted import Change, changed
from trionet.broker.log import _log
from trionet.broker.log._durability import Durability
from trionet.broker.log.state import _producer_state


def _keep_snapshots(_: Any) -> Any:
    """A snapshot inside of a deleted segment stays."""
    return lambda directory, offset: None


def _take_any_snapshot(_: Any) -> Any:
    """A snapshot from before the first segment counts."""
    return lambda snapshots, first, offset: [each for each in snapshots if each <= offset]


def _forget_due_snapshots(forget_before: Any) -> Any:
    """The snapshot of the first segment that stays is left to the next roll."""

    def forgetting(self: Durability, base_offset: int, start_offset: int) -> None:
        forget_before(self, base_offset, start_offset)
        self._snapshots = ()

    return forgetting


BUGS: dict[str, Change] = {
    "keep-snapshots": (_log, "remove_snapshots_before", _keep_snapshots),
    "take-any-snapshot": (_producer_state, "usable_snapshots", _take_any_snapshot),
    "forget-due-snapshots": (Durability, "forget_before", _forget_due_snapshots),
}


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Have one of the bugs for as long as the block lasts.

    Raises:
        KeyError: there is none of this name.
    """
    with changed(*BUGS[name]):
        yield
