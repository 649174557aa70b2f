from __future__ import annotations

import json

import pytest

from demo.tally import Tally, differences

RECORDS = [("UA", b"one"), ("B6", b"two"), ("UA", b"three")]


def totals(records: list[tuple[str, bytes]]) -> dict[str, tuple[int, str]]:
    tally = Tally()
    for key, value in records:
        tally.add(key, value)
    return tally.totals()


def test_the_same_records_have_the_same_totals_whatever_the_order_of_their_keys() -> None:
    actual = differences(totals(RECORDS), totals([RECORDS[1], RECORDS[0], RECORDS[2]]))

    assert [] == actual


def test_totals_survive_the_way_between_two_processes() -> None:
    sent = json.loads(json.dumps(totals(RECORDS)))

    assert [] == differences(sent, json.loads(json.dumps(totals(RECORDS))))


@pytest.mark.parametrize(
    ("consumed", "difference"),
    [
        (RECORDS[:2], "UA: 2 records produced, 1 consumed"),
        ([*RECORDS, RECORDS[0]], "UA: 2 records produced, 3 consumed"),
        ([*RECORDS, ("XX", b"")], "XX: 0 records produced, 1 consumed"),
        (RECORDS[::-1], "UA: 2 records on both sides, but not the same ones"),
        (
            [("UA", b"onet"), ("B6", b"two"), ("UA", b"hree")],
            "UA: 2 records on both sides, but not the same ones",
        ),
    ],
    ids=["lost", "twice", "from nowhere", "another order", "another border"],
)
def test_every_difference_is_seen(consumed: list[tuple[str, bytes]], difference: str) -> None:
    actual = differences(totals(RECORDS), totals(consumed))

    assert [difference] == actual
