"""The open transactions of a log: which is the oldest, and until when ended ones count."""

from __future__ import annotations

from trionet.broker.log.segments._aborted_transactions import AbortedTransaction
from trionet.broker.log.state._open_transactions import NOWHERE, OpenTransactions


def opened(*begun: tuple[int, int, int]) -> OpenTransactions:
    transactions = OpenTransactions()
    for each in begun:
        transactions.begin(*each)
    return transactions


def test_oldest_is_first() -> None:
    transactions = opened((7, 3, 300), (5, 10, 1000))

    assert (3, 300) == transactions.first_unstable(20)
    transactions.end(7, 15, 20)
    assert (10, 1000) == transactions.first_unstable(20)
    transactions.end(5, 16, 20)
    assert (NOWHERE, NOWHERE) == transactions.first_unstable(20)
    assert transactions.is_empty


def test_transaction_begins_once() -> None:
    transactions = opened((7, 3, 300), (7, 5, 500))

    assert {7: 3} == transactions.first_offsets
    assert (3, 300) == transactions.first_unstable(20)


def test_ended_transaction_counts_until_its_marker_is_below_the_high_watermark() -> None:
    transactions = opened((7, 3, 300), (5, 10, 1000))
    transactions.end(5, 15, 12)
    transactions.end(7, 16, 12)

    offsets = [transactions.first_unstable(each)[0] for each in (12, 15, 16)]
    assert [3, 3, 3] == offsets
    assert not transactions.is_empty
    assert (NOWHERE, NOWHERE) == transactions.first_unstable(17)
    assert transactions.is_empty


def test_end_can_be_repeated() -> None:
    """An append that was interrupted is completed once more."""
    transactions = opened((7, 3, 300))
    transactions.end(7, 4, 2)
    transactions.end(7, 4, 2)

    assert (3, 300) == transactions.first_unstable(4)
    assert (NOWHERE, NOWHERE) == transactions.first_unstable(5)


def test_end_without_a_begin_is_nothing() -> None:
    transactions = opened((7, 3, 300))
    transactions.end(8, 4, 2)

    assert {7: 3} == transactions.first_offsets


def test_aborted_transaction_is_stable_up_to_the_oldest_other_one() -> None:
    transactions = opened((7, 3, 300), (5, 10, 1000))

    assert AbortedTransaction(7, 3, 12, 10) == transactions.aborted(7, 12)
    assert AbortedTransaction(5, 10, 12, 3) == transactions.aborted(5, 12)
    assert transactions.aborted(9, 12) is None
    transactions.end(7, 12, 20)
    assert AbortedTransaction(5, 10, 13, 14) == transactions.aborted(5, 13)


def test_position_can_be_corrected() -> None:
    transactions = opened((7, 3, 0))
    transactions.place(7, 120)

    assert (3, 120) == transactions.first_unstable(20)
