"""What is found of records that are copied by transactions."""

from __future__ import annotations

import pytest

from support.exactly_once import Copies, copy_of
from support.ledger import Violation


@pytest.fixture
def copies() -> Copies:
    """A source with one partition of two records, both copied."""
    copies = Copies()
    copies.saw(1, 7, copy_of(0, 0))
    copies.saw(2, 9, copy_of(0, 1))
    return copies


def test_records_that_are_copied_once_are_right(copies: Copies) -> None:
    copies.saw(1, 7, copy_of(0, 0))  # another reader, of the same copy

    copies.check_whole({0: 2})


def test_second_copy_is_found(copies: Copies) -> None:
    with pytest.raises(Violation, match="doubled"):
        copies.saw(1, 8, copy_of(0, 0))


def test_record_without_a_copy_is_found(copies: Copies) -> None:
    with pytest.raises(Violation, match="1 records are lost"):
        copies.check_whole({0: 3})


def test_copy_without_a_record_is_found(copies: Copies) -> None:
    with pytest.raises(Violation, match="no original"):
        copies.check_whole({0: 1})


def test_offset_that_goes_back_is_found(copies: Copies) -> None:
    copies.commits({0: 2, 1: 5})
    copies.commits({0: 2})

    with pytest.raises(Violation, match="partition 1: 1 is committed after 5"):
        copies.commits({1: 1})
