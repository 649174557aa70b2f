"""A bank: transactions that move amounts between accounts, and the rules that its books must keep.

Each record of a transfer says which transaction it belongs to and how many records that one has. So
a reader of committed records can judge what it sees without having seen who sent it, also after all
producers have been killed.
"""

from __future__ import annotations

import random
from collections import defaultdict
from typing import NamedTuple, Self

from support.ledger import Violation

ACCOUNTS = 50
AMOUNT_MAX = 100

Place = tuple[str, int]
"""A topic and the number of a partition."""


class Entry(NamedTuple):
    """One record of a transfer.

    Attributes:
        transfer: the name of the transaction.
        number: of the record in it, from 0.
        size: how many records the transaction has.
        account: whose amount changes.
        amount: by how much.
    """

    transfer: str
    number: int
    size: int
    account: int
    amount: int

    def encode(self) -> bytes:
        return " ".join(map(str, self)).encode()

    @classmethod
    def decode(cls, value: bytes) -> Self:
        transfer, *numbers = value.decode().split()
        return cls(transfer, *map(int, numbers))


def draw_transfer(rng: random.Random, name: str) -> list[Entry]:
    """Draw a transaction that moves amounts among a few accounts."""
    count = rng.randint(2, 5)
    accounts = [rng.randrange(ACCOUNTS) for _ in range(count)]
    amounts = [rng.randint(1, AMOUNT_MAX) for _ in range(count - 1)]
    amounts.append(-sum(amounts))
    return [
        Entry(name, number, count, account, amount)
        for number, (account, amount) in enumerate(zip(accounts, amounts, strict=True))
    ]


class Books:
    """What the producers know of their transactions, and what all readers must find.

    Attributes:
        committed: transactions whose commit was acknowledged.
        aborted: those that are certainly not committed.
        unknown: those whose outcome nobody has learned.
    """

    def __init__(self) -> None:
        self.committed: set[str] = set()
        self.aborted: set[str] = set()
        self.unknown: set[str] = set()
        self._at: dict[Place, dict[int, Entry]] = defaultdict(dict)

    def begin(self, transfer: str) -> None:
        self.unknown.add(transfer)

    def commit(self, transfer: str) -> None:
        """The producer was told that the transaction is committed."""
        if transfer in self.aborted:
            raise Violation(f"{transfer} was aborted, and then committed")
        self.unknown.discard(transfer)
        self.committed.add(transfer)

    def abort(self, transfer: str) -> None:
        """The transaction is certainly not committed, and never will be."""
        if transfer in self.committed:
            raise Violation(f"{transfer} was committed, and then aborted")
        self.unknown.discard(transfer)
        self.aborted.add(transfer)
        for place, entries in self._at.items():
            for offset, entry in entries.items():
                if entry.transfer == transfer:
                    raise Violation(f"{transfer} is read at {place}, {offset}, but was aborted")

    def saw(self, place: Place, offset: int, value: bytes) -> None:
        """A reader of committed records has read a record."""
        entry = Entry.decode(value)
        before = self._at[place].setdefault(offset, entry)
        if before != entry:
            raise Violation(f"{place}: offset {offset} held {before}, and now {entry}")
        if entry.transfer in self.aborted:
            raise Violation(f"{entry.transfer} is read at {place}, {offset}, but was aborted")

    def lost(self, place: Place, offset: int) -> None:
        """A reader has passed an offset, at which another reader may have seen a record."""
        if offset in self._at[place]:
            entry = self._at[place][offset]
            raise Violation(f"{place}: {entry.transfer} at {offset} was read, and is gone")

    def check_whole(self) -> None:
        """All readers have read everything: no transaction is there in part, or twice."""
        found: dict[str, list[Entry]] = defaultdict(list)
        for entries in self._at.values():
            for entry in entries.values():
                found[entry.transfer].append(entry)
        for transfer, parts in found.items():
            numbers = sorted(entry.number for entry in parts)
            if numbers != list(range(parts[0].size)):
                raise Violation(f"{transfer} has {parts[0].size} records; committed: {numbers}")
        missing = self.committed - found.keys()
        if missing:
            raise Violation(f"{len(missing)} committed transactions are lost: {min(missing)}")
        if self.total():
            raise Violation(f"the sum of all accounts has changed by {self.total()}")

    def total(self) -> int:
        """Return the sum of all accounts; each began with 0."""
        return sum(entry.amount for each in self._at.values() for entry in each.values())
