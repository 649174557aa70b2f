"""A short round, and that the audit finds what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from bank.audit import books_of, check_bank, check_copies, check_readers
from bank.copying import copy_of
from bank.readers import Records
from bank.run import run
from bank.work import ABORTED, BANK, COMMITTED, COPIES, ENDING, Journal, Work
from support.bank import Entry
from support.ledger import Violation

PLACE = (BANK, 0)
TAKEN, GIVEN = Entry("x.0.1", 0, 2, 7, -5).encode(), Entry("x.0.1", 1, 2, 8, 5).encode()
WHOLE: Records = {PLACE: {3: TAKEN, 4: GIVEN}}


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_bank_is_whole_after_a_short_round(tmp_path: Path) -> None:
    pytest.importorskip("confluent_kafka")

    outcome = trio.run(run, 1, 3.0, tmp_path)

    assert [] == outcome.wrong
    assert 0 < outcome.counts["committed"]


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    """Of a producer that has begun the transaction x.0.1."""
    journal = Journal(Work("", tmp_path, "x", 0, ""))
    assert "x.0.1" == journal.begin()
    return journal


@pytest.mark.parametrize("last", [ENDING, COMMITTED])
def test_transaction_may_be_there_once_its_commit_was_called(
    journal: Journal, tmp_path: Path, last: str
) -> None:
    journal.write(last, "x.0.1")

    check_bank(books_of(tmp_path), WHOLE)


def test_transaction_whose_commit_was_never_called_may_not_be_there(
    journal: Journal, tmp_path: Path
) -> None:
    """Whatever has ended its producer."""
    with pytest.raises(Violation, match="was aborted"):
        check_bank(books_of(tmp_path), WHOLE)


def test_aborted_transaction_may_not_be_there(journal: Journal, tmp_path: Path) -> None:
    journal.write(ABORTED, "x.0.1")

    with pytest.raises(Violation, match="was aborted"):
        check_bank(books_of(tmp_path), WHOLE)


def test_committed_transaction_may_not_be_lost(journal: Journal, tmp_path: Path) -> None:
    journal.write(COMMITTED, "x.0.1")

    with pytest.raises(Violation, match="lost"):
        check_bank(books_of(tmp_path), {})


@pytest.mark.parametrize("found", [{3: TAKEN}, {3: TAKEN, 4: GIVEN, 5: GIVEN}])
def test_transaction_may_not_be_there_in_part_or_twice(
    journal: Journal, tmp_path: Path, found: dict[int, bytes]
) -> None:
    journal.write(COMMITTED, "x.0.1")

    with pytest.raises(Violation, match="has 2 records"):
        check_bank(books_of(tmp_path), {PLACE: found})


def test_all_readers_must_see_the_same() -> None:
    check_readers({"a": WHOLE, "b": WHOLE})

    with pytest.raises(Violation, match="a and b"):
        check_readers({"a": WHOLE, "b": {PLACE: {3: TAKEN}}})


@pytest.mark.parametrize(
    ("copies", "committed", "complaint"),
    [
        ([TAKEN, GIVEN], 5, None),
        ([TAKEN, GIVEN, GIVEN], 5, "twice"),
        ([TAKEN], 5, "not in copies"),
        ([TAKEN, GIVEN], 4, "has committed 4"),
        ([TAKEN], 4, "not copied"),
        ([GIVEN, GIVEN], 5, "no original"),
    ],
)
def test_each_record_must_be_copied_once_with_its_offset(
    copies: list[bytes], committed: int, complaint: str | None
) -> None:
    offsets = [3, 4, 4]
    found = {offset: copy_of(0, offsets[offset], each) for offset, each in enumerate(copies)}
    if complaint is None:
        check_copies(WHOLE, {(COPIES, 1): found}, {PLACE: committed})
    else:
        with pytest.raises(Violation, match=complaint):
            check_copies(WHOLE, {(COPIES, 1): found}, {PLACE: committed})
