"""What every process of the bank has: its place, its journal, and when it is over.

The job and its processes speak by files, which survive SIGKILL: a process writes what it intends
and what came of it into a journal of its own, and ends once there is a file that says so.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Self

import attrs

BANK: Final = "bank"
COPIES: Final = "copies"
PARTITIONS: Final = 6
GROUP: Final = "copiers"

#: Everything must come to its end within this after the last disturbance.
PATIENCE_SECONDS: Final = 90.0
#: What a process prints as soon as it works.
READY: Final = "ready"
#: The exit status of a producer that has been fenced.
FENCED: Final = 3
#: The exit status of a producer that its library has ended, as no user can prevent.
GIVEN_UP: Final = 4
#: So many transactions of a hundred are aborted on purpose.
ABORTED_PERCENT: Final = 20
PAUSES_SECONDS: Final = (0.0, 0.0, 0.01, 0.05)
TIMEOUT_MS: Final = 60_000

#: What a producer knows of a transaction, in the order in which it learns it.
BEGIN, ENDING, COMMITTED, ABORTED = "begin", "ending", "committed", "aborted"


@attrs.frozen
class Work:
    """What a process is started with.

    Attributes:
        servers: the bootstrap servers.
        folder: of the journals.
        id: the transactional id.
        instance: how many processes have had this id before.
        seed: of what it draws.
    """

    servers: str
    folder: Path
    id: str
    instance: int
    seed: str

    @classmethod
    def from_arguments(cls) -> Self:
        servers, folder, id, instance, seed = sys.argv[1:]
        return cls(servers, Path(folder), id, int(instance), seed)

    @property
    def arguments(self) -> list[str]:
        return [self.servers, str(self.folder), self.id, str(self.instance), self.seed]

    @property
    def name(self) -> str:
        """The name of this process."""
        return f"{self.id}.{self.instance}"

    def rng(self) -> random.Random:
        return random.Random(f"{self.seed} {self.name}")

    def is_over(self) -> bool:
        """Whether the process must end as soon as its transaction has."""
        return self._over.exists()

    def end(self) -> None:
        """Make :meth:`is_over` true for the processes with this id."""
        self._over.touch()

    @property
    def _over(self) -> Path:
        return self.folder / f"{self.id}.over"


class Journal:
    """What one process writes of its transactions.

    Args:
        work: the process.
    """

    def __init__(self, work: Work) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self._file = os.open(work.folder / f"{work.name}.journal", flags)
        self._name = work.name
        self._count = 0

    def begin(self) -> str:
        """Begin a transaction, and return its name."""
        self._count += 1
        transfer = f"{self._name}.{self._count}"
        self.write(BEGIN, transfer)
        return transfer

    def write(self, what: str, transfer: str) -> None:
        # One call, without a buffer: SIGKILL comes before it or after it.
        os.write(self._file, f"{what} {transfer}\n".encode())


def read_journals(folder: Path) -> Iterator[tuple[str, str]]:
    """What all processes have written: what it is, and of which transaction."""
    for path in sorted(folder.glob("*.journal")):
        for line in path.read_text().splitlines():
            what, _, transfer = line.partition(" ")
            yield what, transfer
