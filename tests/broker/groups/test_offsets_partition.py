from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.broker.groups import _offsets_partition as placement
from trionet.broker.groups._offsets_partition import PARTITIONS, java_hash, partition_of


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


@given(st.text(max_size=20), st.integers(0, 300))
def test_hash_of_a_long_text_is_that_of_its_units_one_by_one(text: str, times: int) -> None:
    data = (text * times).encode("utf-16-le", "surrogatepass")
    value = 0
    for index in range(0, len(data), 2):
        value = (31 * value + int.from_bytes(data[index : index + 2], "little")) % 2**32

    assert value == java_hash(text * times) % 2**32


def test_long_group_ids_are_not_kept() -> None:
    before = placement._partition_of_short.cache_info().currsize

    assert abs(java_hash("long" * 8000)) % PARTITIONS == partition_of("long" * 8000)

    assert before == placement._partition_of_short.cache_info().currsize


@given(st.text())
def test_every_group_has_one(group: str) -> None:
    assert 0 <= partition_of(group) < PARTITIONS
