"""What an ordeal would find."""

from __future__ import annotations

from ordeal.ledger import Ledger


def ledger_of(*values: bytes) -> Ledger:
    ledger = Ledger()
    for value in values:
        ledger.send(value)
    return ledger


def test_log_that_is_as_it_was_reported_is_right() -> None:
    ledger = ledger_of(b"0 0", b"0 1", b"1 0")
    ledger.acknowledge((0, 5), b"0 0")
    ledger.process((0, 5), b"0 0")
    ledger.process((0, 5), b"0 0")

    # What nobody acknowledged may be there all the same, and what was sent may be missing.
    ledger.check([(0, 5, b"0 0"), (0, 6, b"0 1")])

    assert [] == ledger.wrong
    assert 0 == ledger.unprocessed


def test_acknowledged_record_that_is_lost_is_found() -> None:
    ledger = ledger_of(b"0 0")
    ledger.acknowledge((0, 5), b"0 0")

    ledger.check([])

    assert ["(0, 5): acknowledged b'0 0', found None"] == ledger.wrong
    assert 1 == ledger.unprocessed


def test_record_without_an_offset_is_looked_for_in_its_partition() -> None:
    ledger = ledger_of(b"0 0", b"0 1")
    ledger.acknowledge((0, -1), b"0 0")
    ledger.acknowledge((1, -1), b"0 1")

    ledger.check([(0, 5, b"0 0"), (0, 6, b"0 1")])

    assert ["partition 1: acknowledged b'0 1' is not there"] == ledger.wrong
    assert 0 == ledger.unprocessed


def test_offset_that_is_given_twice_is_found() -> None:
    ledger = ledger_of(b"0 0", b"1 0")
    ledger.acknowledge((0, 5), b"0 0")
    ledger.acknowledge((0, 5), b"1 0")

    assert ["(0, 5) was given to b'0 0' and b'1 0'"] == ledger.wrong


def test_records_out_of_order_and_twice_are_found() -> None:
    ledger = ledger_of(b"0 0", b"0 1")

    ledger.check([(0, 0, b"0 1"), (0, 1, b"0 0"), (1, 0, b"0 0")])

    assert [
        "partition 0: b'0 0' comes behind 1",
        "1 records are there twice, such as b'0 0'",
    ] == ledger.wrong


def test_without_idempotence_what_is_acknowledged_is_there_and_no_more() -> None:
    ledger = Ledger(is_idempotent=False)
    for value in (b"0 0", b"0 1", b"0 2"):
        ledger.send(value)
    ledger.acknowledge((0, 2), b"0 0")
    ledger.acknowledge((0, -1), b"0 2")

    ledger.check([(0, 0, b"0 1"), (0, 1, b"0 1"), (0, 2, b"0 0")])

    assert ["partition 0: acknowledged b'0 2' is not there"] == ledger.wrong


def test_order_is_that_of_each_producer_in_each_partition() -> None:
    ledger = ledger_of(b"0 0", b"0 1", b"1 0")

    ledger.check([(0, 0, b"0 1"), (0, 1, b"1 0"), (1, 0, b"0 0")])

    assert [] == ledger.wrong


def test_record_that_was_never_sent_is_found() -> None:
    ledger = Ledger()
    ledger.process((0, 0), b"0 0")
    ledger.check([(0, 0, b"0 0")])

    assert [
        "nobody sent b'0 0', read at (0, 0)",
        "nobody sent 1 records, such as b'0 0'",
    ] == ledger.wrong


def test_record_that_was_read_and_is_not_there_is_found() -> None:
    ledger = ledger_of(b"0 0")
    ledger.process((0, 0), b"0 0")

    ledger.check([])

    assert ["(0, 0): processed b'0 0', found None"] == ledger.wrong


def test_offset_that_is_committed_ahead_of_the_group_is_found() -> None:
    ledger = ledger_of(b"0 0", b"0 1")
    ledger.acknowledge((0, 0), b"0 0")
    ledger.acknowledge((0, 1), b"0 1")
    ledger.process((0, 0), b"0 0")

    ledger.committed({0: 1})
    assert [] == ledger.wrong

    ledger.committed({0: 2})
    assert ["(0, 1) is committed, and nobody has processed it"] == ledger.wrong


def test_committed_offset_that_goes_back_is_found() -> None:
    ledger = Ledger()
    ledger.committed({0: 5, 1: 3})
    ledger.committed({0: 4, 1: 3})

    assert ["partition 0: committed 4 after 5"] == ledger.wrong


def test_log_that_ends_before_what_is_acknowledged_is_found() -> None:
    ledger = ledger_of(b"0 0", b"0 1")
    ledger.acknowledge((0, 5), b"0 0")
    ledger.acknowledge((1, 2), b"0 1")

    ledger.ended(ledger.ends(), {0: 6, 1: 2})

    assert ["partition 1 ends at 2, acknowledged up to 3"] == ledger.wrong
