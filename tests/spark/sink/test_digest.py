"""The digest of the rows of a task: equal for the same rows in any order, and for no others."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest

from trionet.spark.sink._columns import Rows
from trionet.spark.sink._digest import RowDigest, digest_of

ROW: dict[str, object] = {"topic": "t", "value": b"value", "key": b"key", "headers": [("a", b"1")]}


Row = Mapping[str, object]


def digest(*rows: Row) -> RowDigest:
    """The digest of rows that come one by one."""
    return digest_of(part(row) for row in rows)


def part(*rows: Row, topic: str = "t", partition: int | None = None) -> Rows:
    """Rows of one topic."""

    def column(name: str) -> list[object] | None:
        values = [row.get(name) for row in rows]
        return None if all(each is None for each in values) else values

    headers = None if column("headers") is None else [row.get("headers") or [] for row in rows]
    return Rows(
        str(rows[0].get("topic", topic)),
        partition,
        [row.get("value") for row in rows],  # type: ignore[misc]
        column("key"),  # type: ignore[arg-type]
        headers,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    "other",
    [
        {"topic": "u"},
        {"value": b"valu"},
        {"value": b"eulav"},
        {"value": None},
        {"value": b""},
        {"key": b"yek"},
        {"key": None},
        {"key": b""},
        {"key": b"keyvalu", "value": b"e"},
        {"headers": None},
        {"headers": [("a", b"2")]},
        {"headers": [("b", b"1")]},
        {"headers": [("a", None)]},
        {"headers": [("a", b"1"), ("a", b"1")]},
        {"headers": [("", b"a1")]},
    ],
    ids=repr,
)
def test_other_row_has_another_digest(other: Row) -> None:
    assert digest(ROW) != digest({**ROW, **other})


@pytest.mark.parametrize(
    ("some", "others"),
    [
        ({"key": b"121"}, {"key": b"202"}),
        ({"headers": [("121", b"x")]}, {"headers": [("202", b"x")]}),
    ],
    ids=["keys", "header names"],
)
def test_keys_and_names_of_one_adler_sum_have_other_digests(some: Row, others: Row) -> None:
    """Sums of a few bytes are the same for many of them, as those of numbers in digits."""
    assert digest({**ROW, **some}) != digest({**ROW, **others})


def test_keys_in_digits_have_a_digest_each() -> None:
    digests = {digest({**ROW, "key": b"%d" % number}) for number in range(1000, 6000)}
    named = {digest({**ROW, "headers": [(f"{each}", b"x")]}) for each in range(1000, 6000)}

    assert (5000, 5000) == (len(digests), len(named))


def test_order_and_batches_do_not_matter() -> None:
    rows = [{"value": b"%d" % n, "key": None if n % 3 else b"%d" % (n % 5)} for n in range(60)]
    mixed = random.Random(1).sample(rows, len(rows))

    assert digest_of([part(*rows)]) == digest_of([part(*mixed[:20]), part(*mixed[20:])])
    assert digest_of([part(*rows)]) == digest(*rows)
    assert 60 == digest(*rows).rows


def test_partition_does_not_matter() -> None:
    """A row without a key may go to any, and to another one when it is written again."""
    assert digest_of([part(ROW, partition=0)]) == digest_of([part(ROW, partition=1)])


def test_rows_that_swap_their_values_have_another_digest() -> None:
    a, b = {"key": b"a", "value": b"1"}, {"key": b"b", "value": b"2"}

    assert digest(a, b) != digest({**a, "value": b"2"}, {**b, "value": b"1"})
    assert digest(a, a) != digest(a)
    assert digest(a, a) != digest(b, b)


@pytest.mark.parametrize("values", [(20, 83), (21, 82), (30, 93)])
def test_swaps_that_a_sum_of_linear_hashes_would_miss_have_another_digest(
    values: tuple[int, int],
) -> None:
    """The keys differ in no bit of their hashes in which the values do."""
    (a, b), (c, d) = (b"779", b"620"), (b"%d" % each for each in values)

    assert digest({"key": a, "value": c}, {"key": b, "value": d}) != digest(
        {"key": a, "value": d}, {"key": b, "value": c}
    )


@pytest.mark.parametrize("column", ["value", "headers"])
def test_short_rows_that_swap_have_another_digest(column: str) -> None:
    rng = random.Random(1)
    for _ in range(1000):
        keys = [b"%d" % each for each in rng.sample(range(1000), 2)]
        others: list[object] = [b"%d" % each for each in rng.sample(range(100), 2)]
        if column == "headers":
            others = [[("name", each)] for each in others]
        rows = [{"key": a, column: b} for a, b in zip(keys, others, strict=True)]
        swapped = [{"key": a, column: b} for a, b in zip(keys, others[::-1], strict=True)]
        assert digest(*rows) != digest(*swapped), (rows, swapped)
