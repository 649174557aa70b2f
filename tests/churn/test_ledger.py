"""What a churn run would find: a commit that passes over a record that nobody has processed."""

from __future__ import annotations

from pathlib import Path

from churn.ledger import Ledger, NotesReader


def test_a_commit_that_passes_over_a_record_is_found() -> None:
    ledger = Ledger(2)
    ledger.add([(0, 0), (0, 1), (0, 3), (1, 0)])

    assert [] == ledger.skipped({0: 2, 1: 1})
    assert ["partition 0: 4 is committed, 2 never processed"] == ledger.skipped({0: 4, 1: 1})

    ledger.add([(0, 2)])

    assert [] == ledger.skipped({0: 4})


def test_what_is_processed_again_counts_once() -> None:
    ledger = Ledger(1)
    ledger.add([(0, 1), (0, 0), (0, 1), (0, 0)])

    assert 2 == ledger.distinct
    assert 4 == ledger.processed
    assert ledger.has_all({0: 2})
    assert not ledger.has_all({0: 3})


def test_notes_are_read_as_they_come_and_lines_when_they_are_whole(tmp_path: Path) -> None:
    reader = NotesReader(tmp_path)
    first, second = tmp_path / "0.notes", tmp_path / "1.notes"

    first.write_bytes(b"3 10\n3 1")
    assert [(3, 10)] == reader.new()

    first.write_bytes(b"3 10\n3 11\n")
    second.write_bytes(b"0 0\n")
    assert [(0, 0), (3, 11)] == sorted(reader.new())
    assert [] == reader.new()
