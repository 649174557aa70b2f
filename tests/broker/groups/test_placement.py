from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.broker.groups.placement import PARTITIONS, java_hash, partition_of


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("console-consumer-1", 35782224),
        ("\U0001f600", 1772899),
        # The one whose absolute value Java has not.
        ("polygenelubricants", -(2**31)),
    ],
)
def test_hash_is_javas(text: str, number: int) -> None:
    assert number == java_hash(text)


@pytest.mark.parametrize(
    ("group", "partition"), [("hello", 22), ("polygenelubricants", 0), ("a", 47)]
)
def test_partition_is_the_one_that_kafka_takes(group: str, partition: int) -> None:
    assert partition == partition_of(group)


@given(st.text())
def test_every_group_has_one(group: str) -> None:
    assert 0 <= partition_of(group) < PARTITIONS
