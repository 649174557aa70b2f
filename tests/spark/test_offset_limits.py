"""Offsets in the connector's JSON, and where a query begins and ends."""

from __future__ import annotations

import json
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trionet.client._topic_partition import TopicPartition
from trionet.errors import ConfigError
from trionet.spark._offset_limits import (
    EARLIEST,
    LATEST,
    Earliest,
    GlobalTimestamp,
    Latest,
    NoMatch,
    OffsetLimit,
    Offsets,
    OffsetsMismatchError,
    SpecificOffsets,
    SpecificTimestamps,
    from_json,
    from_plain,
    offsets_of_times,
    parse_offsets,
    parse_timestamps,
    partitions_from_json,
    start_in,
    to_json,
    to_plain,
    with_start,
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
        '{"t":{"0":1,"+0":2}}',
        '{"t":{"0":1}} {"t":{"1":2}}',
        '{"t":{"0":1e30}}',
        '{"t":{"0":NaN}}',
        '{"t":{"0":-Infinity}}',
        '{"t":{" 0":1}}',
        '{"t":{"0":' + 5000 * "1" + "}}",
        '{"t":{"' + 5000 * "1" + '":1}}',
        "[" * 100_000,
    ],
)
def test_other_json_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ConfigError, match=r"expected e\.g\.") as caught:
        from_json(text)

    assert text[:100] in str(caught.value)


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ('{"t":{"0":1e1}}', 10),
        ('{"t":{"0":-2.0}}', -2),
        ('{"t":{"+0":3}}', 3),
        ('{"t":{"00":4}}', 4),
    ],
)
def test_numbers_are_written_in_any_way_that_the_connector_reads(text: str, offset: int) -> None:
    offsets = {TopicPartition("t", 0): offset}

    assert offsets == from_json(text) == parse_offsets(text).offsets
    assert {type(each) for each in from_json(text).values()} == {int}


def test_a_partition_below_0_is_one_that_does_not_exist() -> None:
    assert [("t", 1), ("t", -1)] == list(partitions_from_json('{"t":[1.0,-1]}'))


@pytest.mark.parametrize(
    "text",
    ["", "{", '{"t":0}', '{"t":["0"]}', '{"t":[0.5]}', '{"t":[null]}', '{"t":[4294967296]}'],
)
def test_other_json_of_partitions_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ConfigError, match=r"expected e\.g\."):
        partitions_from_json(text)


@pytest.mark.parametrize("plain", [None, 3, "text", {"t": None}, {"t": {0: 1}}])
def test_what_are_no_offsets_from_spark_is_refused(plain: object) -> None:
    with pytest.raises(ConfigError, match=r"expected e\.g\."):
        from_plain(plain)


A0, A1, B0, B1 = (
    TopicPartition(topic, number) for topic in ("topicA", "topicB") for number in (0, 1)
)


@pytest.mark.parametrize(
    ("text", "offsets", "topics"),
    [
        ('{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}', {A0: 23, A1: -1, B0: -2}, {}),
        ('{"topicA":"earliest","topicB":"latest"}', {}, {"topicA": EARLIEST, "topicB": LATEST}),
        (
            '{"topicA":"earliest","topicB":{"0":23,"1":-1},"topicC":"LATEST"}',
            {B0: 23, B1: -1},
            {"topicA": EARLIEST, "topicC": LATEST},
        ),
    ],
)
def test_offsets_are_given_by_partition_or_by_topic(
    text: str, offsets: Offsets, topics: dict[str, int]
) -> None:
    """JS3, JS4, JS5: also mixed, and whatever the case of the words."""
    assert SpecificOffsets(offsets, topics) == parse_offsets(text)


def test_a_topic_has_one_form_only() -> None:
    """JS6: else it would not be clear which counts."""
    with pytest.raises(ConfigError, match="duplicate key topicA"):
        parse_offsets('{"topicA":"earliest","topicA":{"0":23}}')


@pytest.mark.parametrize(
    "text",
    [
        '{"topicA":"first"}',
        '{"topicA":[0,1]}',
        '{"topicA":{"0":"earliest"}}',
        '"earliest"',
        "not json",
    ],
)
def test_other_json_is_refused(text: str) -> None:
    """JS7: and shown."""
    with pytest.raises(ConfigError, match=r"expected e\.g\.") as caught:
        parse_offsets(text)

    assert text in str(caught.value)


@pytest.mark.parametrize("text", ['{"t":"earliest"}', '{"t":{"0":-1}}', '{"t":1000}', "1000"])
def test_times_are_given_by_partition(text: str) -> None:
    with pytest.raises(ConfigError, match=r"expected e\.g\. .*123456789"):
        parse_timestamps(text, NoMatch.ERROR)


@pytest.mark.parametrize(("limit", "offset"), [(Earliest(), EARLIEST), (Latest(), LATEST)])
def test_an_end_stands_for_each_partition_until_it_is_read(
    limit: Earliest | Latest, offset: int
) -> None:
    actual = limit.for_partitions([A1, A0])

    assert [(A0, offset), (A1, offset)] == list(actual.items())


def test_the_end_of_a_topic_is_that_of_the_partitions_it_has_now() -> None:
    """OL1: beside offsets of another topic."""
    limit = SpecificOffsets({B0: 23}, {"topicA": EARLIEST})

    actual = limit.for_partitions([A0, A1, B0])

    assert actual == {A0: EARLIEST, A1: EARLIEST, B0: 23}


def test_offsets_of_all_partitions_stay_as_they_are() -> None:
    """OL2: whoever names every partition gets just these."""
    assert SpecificOffsets({B0: 23}).for_partitions([B0]) == {B0: 23}


def test_a_topic_that_is_not_read_has_no_end() -> None:
    """OL3: and is named."""
    limit = SpecificOffsets({}, {"topicA": EARLIEST, "topicC": EARLIEST})

    with pytest.raises(OffsetsMismatchError, match="topicC") as caught:
        limit.for_partitions([A0])

    assert caught.value.condition == "KAFKA_TOPIC_OFFSET_DOES_NOT_MATCH_ASSIGNED"


@pytest.mark.parametrize("offsets", [{A0: -2, A1: -2}, {A0: 0, A1: 0, B0: 0, B1: 0}])
def test_offsets_are_for_the_partitions_that_are_read_and_no_others(offsets: Offsets) -> None:
    """OR4: those that were given and those that are read are named."""
    with pytest.raises(
        OffsetsMismatchError, match=r"given for topicA-0.*query reads topicA-0"
    ) as caught:
        SpecificOffsets(offsets).for_partitions([A0, A1, B0])

    assert caught.value.condition == "KAFKA_START_OFFSET_DOES_NOT_MATCH_ASSIGNED"


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize(("is_start", "position"), [(True, "starting"), (False, "ending")])
def test_times_are_for_the_partitions_that_are_read_and_no_others(
    count: int, is_start: bool, position: str
) -> None:
    """OR7: too few or too many."""
    limit = SpecificTimestamps({TopicPartition("t", number): 1000 for number in range(count)})
    partitions = [TopicPartition("t", number) for number in range(3)]

    with pytest.raises(OffsetsMismatchError, match=f"timestamps of {position} offsets") as caught:
        limit.for_partitions(partitions, is_start=is_start)

    assert caught.value.condition == "KAFKA_TIMESTAMP_OFFSET_DOES_NOT_MATCH_ASSIGNED"


def test_one_time_is_for_every_partition() -> None:
    assert GlobalTimestamp(1000).for_partitions([A1, A0]) == {A0: 1000, A1: 1000}
    assert SpecificTimestamps({A0: 1, A1: 2}).for_partitions([A1, A0]) == {A0: 1, A1: 2}


def test_a_match_is_where_the_query_begins() -> None:
    actual = offsets_of_times(
        GlobalTimestamp(1000), {A0: 1000, A1: 1000}, {A0: 0, A1: 42}, is_start=True
    )

    assert actual == {A0: 0, A1: 42}


@given(ANY_OFFSETS, ANY_OFFSETS)
@settings(max_examples=50)
def test_the_end_of_the_first_micro_batch_names_its_start(end: Offsets, start: Offsets) -> None:
    """Spark stores it as text; other readers find the partitions of the end, and no others."""
    stored = json.loads(json.dumps(with_start(end, start)))

    assert end == from_plain(stored)
    assert start == start_in(stored)
    assert start_in(to_plain(end)) is None


def test_a_start_without_a_match_is_an_error() -> None:
    """It names the partition and the time."""
    with pytest.raises(OffsetsMismatchError, match=r"no offset of topicA-1 matched.* 1000"):
        offsets_of_times(
            GlobalTimestamp(1000), {A0: 1000, A1: 1000}, {A0: 0, A1: -1}, is_start=True
        )


@pytest.mark.parametrize("found", [{A0: -1}, {}])
def test_a_start_without_a_match_may_be_the_end(found: Offsets) -> None:
    limit = SpecificTimestamps({A0: 1000}, NoMatch.LATEST)

    assert offsets_of_times(limit, {A0: 1000}, found, is_start=True) == {A0: LATEST}


def test_an_end_without_a_match_is_the_latest() -> None:
    assert offsets_of_times(GlobalTimestamp(1000), {A0: 1000}, {A0: -1}, is_start=False) == {
        A0: LATEST
    }


@pytest.mark.parametrize(
    "limit",
    [
        Earliest(),
        Latest(),
        SpecificOffsets({A0: 1}, {"topicB": LATEST}),
        SpecificTimestamps({A0: 1}, NoMatch.LATEST),
        GlobalTimestamp(1000),
    ],
)
def test_a_limit_travels_to_the_workers(limit: OffsetLimit) -> None:
    assert limit == pickle.loads(pickle.dumps(limit))
