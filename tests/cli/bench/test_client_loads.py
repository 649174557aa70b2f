"""What the loads on a cluster write, and the latency of each record."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.cli.bench._client_loads import Acknowledgements, Payloads, payloads_of, random_payloads
from trionet.cli.bench._results import Tally


def made() -> Acknowledgements:
    return Acknowledgements(Tally(began=0.0))


def test_a_batch_has_the_oldest_records_of_its_partition() -> None:
    waiting = made()
    waiting.sent(0, records=10, bytes=1000, began=1.0)
    waiting.sent(0, records=10, bytes=1000, began=2.0)
    waiting.sent(1, records=5, bytes=500, began=1.0)

    waiting.acknowledged(0, records=15, at=3.0)

    tally = waiting.tally
    assert (15, 1500, 10) == (tally.records, tally.bytes, waiting.waiting)
    assert (10 * 2_000_000 + 5 * 1_000_000, 2_000_000) == (
        tally.total_us,
        tally.histogram.maximum,
    )


def test_a_batch_may_be_reported_before_it_is_known_where_its_records_went() -> None:
    waiting = made()
    waiting.acknowledged(0, records=3, at=1.5)

    waiting.sent(0, records=2, bytes=20, began=1.0)
    waiting.sent(0, records=2, bytes=20, began=1.25)

    assert (3, 30, 1) == (waiting.tally.records, waiting.tally.bytes, waiting.waiting)
    assert 2 * 500_000 + 250_000 == waiting.tally.total_us


def test_records_that_are_not_written_have_no_latency() -> None:
    waiting = made()
    waiting.sent(0, records=2, bytes=20, began=1.0)

    waiting.acknowledged(0, records=1, at=2.0, error="too large")
    waiting.acknowledged(0, records=1, at=3.0)

    tally = waiting.tally
    assert (1, 1, "too large") == (tally.records, tally.failed, tally.failure)
    assert (1, 2_000_000) == (tally.histogram.count, tally.total_us)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 2), st.integers(1, 9)), max_size=60))
def test_all_that_is_taken_and_acknowledged_is_counted_once(
    steps: list[tuple[bool, int, int]],
) -> None:
    waiting = made()
    taken = [0, 0, 0]
    told = [0, 0, 0]
    for is_taken, partition, records in steps:
        if is_taken:
            waiting.sent(partition, records, records * 7, began=1.0)
            taken[partition] += records
        else:
            waiting.acknowledged(partition, records, at=1.001)
            told[partition] += records

    matched = sum(map(min, taken, told))
    assert (matched, 1000 * matched) == (waiting.tally.records, waiting.tally.total_us)
    assert sum(taken) - matched == waiting.waiting
    if waiting.waiting == 0:
        assert 7 * sum(taken) == waiting.tally.bytes


def test_values_come_in_turns_with_their_size() -> None:
    payloads = Payloads([b"a", b"bb", b"ccc"])

    assert ([b"a", b"bb"], 3) == payloads.take(2)
    assert ([b"ccc", b"a", b"bb", b"ccc", b"a"], 10) == payloads.take(5)


@pytest.mark.parametrize("size", [0, 1, 100, 2_000_000])
def test_random_values_have_the_size_that_was_asked_for(size: int) -> None:
    values, total = random_payloads(size).take(2)

    assert [size, size] == [len(each) for each in values]
    assert 2 * size == total


def test_random_values_are_letters_the_same_in_each_run() -> None:
    [first, second], _ = random_payloads(100).take(2)

    assert first != second
    assert first.isalpha()
    assert first.isupper()
    assert [first, second] == random_payloads(100).take(2)[0]


def test_values_of_a_file_are_between_delimiters() -> None:
    payloads = payloads_of(b"one\n\ntwo\n", b"\n")

    assert payloads is not None
    assert ([b"one", b"two", b"one"], 9) == payloads.take(3)
    assert payloads_of(b"\n\n", b"\n") is None
