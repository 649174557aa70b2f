"""What must hold when all processes have ended: the books, the copies, and no open transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from bank.copying import original_of
from bank.readers import Records
from bank.work import ABORTED, BANK, BEGIN, COMMITTED, COPIES, ENDING, read_journals
from support.bank import Books, Place
from support.ledger import Violation


def books_of(folder: Path) -> Books:
    """What the producers know.

    A transaction whose commit was never called is aborted, whatever has ended its producer.
    """
    last = {transfer: what for what, transfer in read_journals(folder)}
    books = Books()
    for transfer, what in last.items():
        books.begin(transfer)
        if what == COMMITTED:
            books.commit(transfer)
        elif what in (ABORTED, BEGIN):
            books.abort(transfer)
        elif what != ENDING:
            raise Violation(f"{transfer} has a journal that says {what!r}")
    return books


def check_bank(books: Books, seen: Records) -> None:
    """The records that are committed are those of the committed transactions."""
    for place, records in seen.items():
        for offset, value in records.items():
            books.saw(place, offset, value)
    books.check_whole()


def check_readers(all_seen: Mapping[str, Records]) -> None:
    """All readers have seen the same, whenever they have read it."""
    (first, expected), *others = all_seen.items()
    for name, seen in others:
        for place in expected.keys() | seen.keys():
            if expected.get(place, {}) != seen.get(place, {}):
                difference = expected[place].items() ^ seen[place].items()
                raise Violation(
                    f"{place}: {first} and {name} have seen other records: {difference}"
                )


def check_copies(bank: Records, copies: Records, committed: Mapping[Place, int]) -> None:
    """Each committed record is copied exactly once, up to the offsets that are committed."""
    counts: Counter[tuple[int, int]] = Counter()
    for records in copies.values():
        for value in records.values():
            partition, offset, original = original_of(value)
            counts[partition, offset] += 1
            if bank.get((BANK, partition), {}).get(offset) != original:
                raise Violation(f"a copy of {original!r} at {partition}, {offset} has no original")
    twice = [place for place, count in counts.items() if count > 1]
    if twice:
        raise Violation(f"{len(twice)} records are copied twice, such as {min(twice)}")
    for (topic, partition), records in bank.items():
        for offset in records:
            is_committed = offset < committed.get((topic, partition), 0)
            is_copied = (partition, offset) in counts
            if is_committed != is_copied:
                raise Violation(
                    f"{partition}, {offset} is {'' if is_copied else 'not '}in {COPIES}, but the"
                    f" group has committed {committed.get((topic, partition), 0)}"
                )
            if not is_copied:
                raise Violation(f"{partition}, {offset} is not copied")
