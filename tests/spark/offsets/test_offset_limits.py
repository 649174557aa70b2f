"""Where a query begins and ends: what was written, and what that is for its partitions."""

from __future__ import annotations

import pickle

import pytest

from trionet.client._topic_partition import TopicPartition
from trionet.errors import ConfigError
from trionet.spark.offsets._errors import OffsetsMismatchError
from trionet.spark.offsets._offset_limits import (
    Earliest,
    GlobalTimestamp,
    Latest,
    NoMatch,
    OffsetLimit,
    SpecificOffsets,
    SpecificTimestamps,
    offsets_of_times,
    parse_offsets,
    parse_timestamps,
)
from trionet.spark.offsets._partition_offsets import EARLIEST, LATEST, Offsets

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
