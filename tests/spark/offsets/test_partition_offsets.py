"""Offsets and partitions as JSON: what the connector writes is read, what is written it reads."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trionet.client._topic_partition import TopicPartition
from trionet.errors import ConfigError
from trionet.spark.offsets._partition_offsets import (
    Offsets,
    from_json,
    from_plain,
    partitions_from_json,
    to_json,
    to_plain,
)

NAMES = st.text('a.ü"', min_size=1, max_size=2)
NUMBERS = st.integers(min_value=0, max_value=2**31 - 1)
OFFSETS = st.integers(min_value=-2, max_value=2**63 - 1)
ANY_OFFSETS = st.dictionaries(st.builds(TopicPartition, NAMES, NUMBERS), OFFSETS, max_size=5)


def test_partitions_are_read() -> None:
    """JS1: all of them, in their order."""
    actual = partitions_from_json('{"topicA":[0,1],"topicB":[4,6]}')

    expected = [("topicA", 0), ("topicA", 1), ("topicB", 4), ("topicB", 6)]
    assert expected == list(actual)


def test_offsets_are_read() -> None:
    """JS2: with the numbers that stand for the latest and the earliest."""
    actual = from_json('{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}')

    assert actual == {("topicA", 0): 23, ("topicA", 1): -1, ("topicB", 0): -2}


def test_what_spark_2_1_wrote_is_read() -> None:
    """SO4: it was the same."""
    actual = from_json('{"topic1":{"0":456,"1":789},"topic2":{"0":0}}\n')

    assert actual == {("topic1", 0): 456, ("topic1", 1): 789, ("topic2", 0): 0}


def test_the_same_offsets_have_one_text_whatever_order_they_came_in() -> None:
    """Spark compares the offsets of a Python source by their text: else it would never rest."""
    offsets = {TopicPartition("t", number): number for number in (10, 9, 1)}
    offsets[TopicPartition("a", 0)] = 7

    assert to_json(offsets) == '{"a":{"0":7},"t":{"1":1,"9":9,"10":10}}'
    assert to_json(offsets) == to_json(dict(reversed(offsets.items())))
    assert json.dumps(to_plain(offsets)) == json.dumps(to_plain(dict(sorted(offsets.items()))))


@settings(max_examples=50)
@given(ANY_OFFSETS)
def test_offsets_come_back_from_their_json(offsets: Offsets) -> None:
    """SO2: as text, and as Spark hands them over."""
    assert offsets == from_json(to_json(offsets))
    assert offsets == from_plain(json.loads(json.dumps(to_plain(offsets))))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not json",
        "[]",
        '"earliest"',
        '{"t":1}',
        '{"t":[0]}',
        '{"t":{"0":"1"}}',
        '{"t":{"0":1.5}}',
        '{"t":{"0":true}}',
        '{"t":{"0":null}}',
        '{"t":{"zero":1}}',
        '{"t":{"-1":1}}',
        '{"t":{"2147483648":1}}',
        '{"t":{"0":-3}}',
        '{"t":{"0":9223372036854775808}}',
        '{"t":{"0":1},"t":{"1":1}}',
        '{"t":{"0":1,"0":2}}',
        "[" * 100_000,
    ],
)
def test_other_json_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ConfigError, match=r"expected e\.g\.") as caught:
        from_json(text)

    assert text[:100] in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", '{"t":0}', '{"t":["0"]}', '{"t":[-1]}', '{"t":[0.0]}'])
def test_other_json_of_partitions_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ConfigError, match=r"expected e\.g\."):
        partitions_from_json(text)


@pytest.mark.parametrize("plain", [None, 3, "text", {"t": None}, {"t": {0: 1}}])
def test_what_are_no_offsets_from_spark_is_refused(plain: object) -> None:
    with pytest.raises(ConfigError, match=r"expected e\.g\."):
        from_plain(plain)
