"""Transactions, as they are seen."""

from __future__ import annotations

import pytest

from support.shown import Shown, wanted_by
from trionet.dashboard.model._model import Model
from trionet.dashboard.model._rows import TransactionPartitionRow, TransactionRow

ROWS = (
    TransactionRow("idle", 7, "Empty"),
    TransactionRow(
        "orders-1",
        8,
        "Ongoing",
        3,
        12.0,
        60.0,
        1,
        None,
        (
            TransactionPartitionRow("orders", 0, 1_234, 2.0),
            TransactionPartitionRow("__consumer_offsets", 17),
        ),
    ),
    TransactionRow("", 9, "Ongoing", 0, 7_200.0, hangs="no transactional id", partitions=()),
)


@pytest.fixture
def model() -> Model:
    model = Model()
    model.transactions.replace({(row.id, row.producer_id): row for row in ROWS}, 1.0)
    return model


def test_a_transaction_is_a_line_the_oldest_first(model: Model) -> None:
    shown = Shown(model, "transactions", width=140)

    assert ["orders-1", "Ongoing", "12", "s", "2", "1m", "00s", "8", "3", "1"] == (
        shown.line("orders-1")
    )
    assert ["idle", "Empty", "7"] == shown.line("idle")
    lines = shown.text.splitlines()
    [hanging] = [line for line in lines if "no transactional id" in line]
    assert lines.index(hanging) < lines.index(next(line for line in lines if "orders-1" in line))
    assert ("transactions", None) == wanted_by(shown)


def test_enter_shows_its_partitions(model: Model) -> None:
    shown = Shown(model, "transactions")
    shown.press("j", "enter")

    assert "Transactions → orders-1" in shown.text
    assert "producer 8  epoch 3  timeout 1m 00s  coordinator 1" in shown.text
    assert ["orders", "0", "1,234", "2.0", "s"] == shown.line("1,234")
    assert ["__consumer_offsets", "17"] == shown.line("__consumer_offsets")
    assert ("transactions", None) == wanted_by(shown)


def test_one_that_hangs_says_why(model: Model) -> None:
    shown = Shown(model, "transactions")
    shown.press("enter")

    assert "producer 9" in shown.text
    assert "hangs: no transactional id" in shown.text


def test_one_that_is_gone_or_not_described_is_said_so(model: Model) -> None:
    shown = Shown(model, "transactions")
    shown.press("G", "enter")
    undescribed = shown.text
    model.transactions.replace({}, 2.0)

    assert "idle" in undescribed
    assert "not been read" in undescribed or "Waiting" in undescribed
    assert "the transaction has ended" in shown.text
