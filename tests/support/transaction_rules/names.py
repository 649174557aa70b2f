"""What a scenario calls by names: the same text against every broker, however often it is run."""

from __future__ import annotations

import time
from collections.abc import Callable

Identity = tuple[int, int]
"""A producer id and its epoch."""


class Names:
    """Translates between the names of one scenario and what its broker knows.

    Topics, groups and transactional ids get a prefix, so that scenarios share a broker.
    Producer ids are P0, P1 … in the order in which they appear; the epoch of the transaction
    coordinator is ``c``.

    Args:
        prefix: what the broker's names begin with.
        coordinator_epoch: what the broker writes into its own markers.

    Attributes:
        identities: the last identity that the broker gave to each transactional id.
        topic_ids: of the topics that the scenario has created.
        members: the ids of group members by their names.
    """

    def __init__(self, prefix: str, coordinator_epoch: int) -> None:
        self._prefix = prefix
        self.coordinator_epoch = coordinator_epoch
        self._producer_ids: list[int] = []
        self._begun: dict[str, int] = {}
        self.identities: dict[str, Identity] = {}
        self.topic_ids: dict[str, bytes] = {}
        self.members: dict[str, str] = {}
        # An hour ago, before all markers: these have the broker's time, and a segment is rolled
        # when its records are far apart.
        self._timestamp = int(time.time() * 1000) - 3_600_000

    def next_timestamp(self) -> int:
        """Of a batch: later than those before."""
        self._timestamp += 1000
        return self._timestamp

    def begin_again(self, transactional_id: str) -> None:
        """Give a transactional id another full name, and forget the producer id that it had."""
        found = self.identities.pop(transactional_id, None)
        if found is not None:
            self._producer_ids.remove(found[0])
            self._begun[transactional_id] = self._begun.get(transactional_id, 0) + 1

    def full(self, name: str) -> str:
        """What the broker calls a topic, a group or a transactional id; the empty name stays."""
        begun = f"-{self._begun[name]}" if name in self._begun else ""
        return self._prefix + name + begun if name else name

    def is_own(self, full: str) -> bool:
        return full.startswith(self._prefix)

    def short(self, full: str) -> str:
        """The inverse of `full`."""
        for name in self._begun:
            if full == self.full(name):
                return name
        return full.removeprefix(self._prefix)

    def producer_id(self, number: int) -> int:
        """The id that is called ``P<number>``."""
        return self._producer_ids[number]

    def shown_producer(self, producer_id: int) -> str:
        """``P0`` for the first id that is shown; an invented one keeps its digits."""
        if producer_id < 0 or producer_id >= INVENTED:
            return str(producer_id)
        if producer_id not in self._producer_ids:
            self._producer_ids.append(producer_id)
        return f"P{self._producer_ids.index(producer_id)}"

    def shown(self, identity: Identity) -> str:
        """``P0/3``: the id and the epoch."""
        return f"{self.shown_producer(identity[0])}/{identity[1]}"

    def shown_coordinator_epoch(self, epoch: int) -> str:
        """Relative to the coordinator's own; -1 is none."""
        return "-1" if epoch == -1 else f"c{epoch - self.coordinator_epoch:+}"


#: Ids from here on are none that a broker has given.
INVENTED = 10**9

Who = Callable[[Names], Identity]
"""Finds an identity when its step is played."""


def current(transactional_id: str, epochs: int = 0) -> Who:
    """The last identity that the broker gave, or the one so many epochs later."""

    def find(names: Names) -> Identity:
        producer_id, epoch = names.identities[transactional_id]
        return producer_id, epoch + epochs

    return find


def named(number: int, epoch: int) -> Who:
    """``P<number>`` with that epoch."""
    return lambda names: (names.producer_id(number), epoch)


def exactly(producer_id: int, epoch: int) -> Who:
    """An identity that no broker has given."""
    return lambda _: (producer_id, epoch)


NOBODY = exactly(-1, -1)
STRANGER = exactly(INVENTED, 0)
