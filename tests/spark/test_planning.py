"""The ranges of offsets of each task, what is lost, and how much a micro-batch reads at most."""

from __future__ import annotations

import pickle
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trionet.client._topic_partition import TopicPartition
from trionet.errors import ConfigError
from trionet.protocol._config_types import LONG_MAX
from trionet.protocol._wire import NO_UUID
from trionet.spark._offset_limits import (
    EARLIEST,
    LATEST,
    AddedPartitionError,
    DataLossError,
    Earliest,
    InitialOffsetNotFoundError,
    Latest,
    OffsetChangedError,
    Offsets,
    OffsetsMismatchError,
    PartitionsDeletedError,
    SpecificOffsets,
)
from trionet.spark._planning import (
    OffsetRange,
    TriggerDelay,
    batch_plan,
    check_order,
    needs_split,
    rate_limited,
    split,
    split_plan,
    stream_plan,
    verify_available_now,
)

#: A partition of topic t1, t2 or t3, by its digit, from an offset until before another.
Piece = tuple[int, int, int]


def ranges_of(*pieces: Piece) -> list[OffsetRange]:
    return [OffsetRange(f"t{number}", 1, start, until) for number, start, until in pieces]


def cuts(number: int, *offsets: int) -> list[Piece]:
    return [(number, *pair) for pair in pairwise(offsets)]


@pytest.mark.parametrize(
    ("min_partitions", "given_ranges", "expected"),
    [
        pytest.param(None, [(1, 1, 2)], [(1, 1, 2)], id="as many as partitions"),
        pytest.param(None, [(1, 1, 2), (2, 1, 1)], [(1, 1, 2)], id="nothing to read"),
        pytest.param(
            3, [(n, 1, 2) for n in (1, 2, 3)], [(n, 1, 2) for n in (1, 2, 3)], id="N to N"
        ),
        pytest.param(4, [(1, 1, 5)], cuts(1, 1, 2, 3, 4, 5), id="1 to N"),
        pytest.param(4, [(1, 1, 5), (2, 1, 21)], [(1, 1, 5), *cuts(2, 1, 7, 14, 21)], id="skewed"),
        pytest.param(
            4, [(1, 1, 1), (2, 1, 21)], cuts(2, 1, 6, 11, 16, 21), id="an empty one beside"
        ),
        pytest.param(
            4, [(1, 1, 2), (2, 1, 1001)], [(1, 1, 2), *cuts(2, 1, 334, 667, 1001)], id="very skewed"
        ),
        pytest.param(1, [(1, 1, 5), (2, 1, 21)], [(1, 1, 5), (2, 1, 21)], id="enough already"),
        pytest.param(
            12,
            [(1, 0, 16), (2, 0, 5), *((3, n, n + 1) for n in range(10))],
            [(1, 0, 16), (2, 0, 5), *((3, n, n + 1) for n in range(10))],
            id="just enough",
        ),
        pytest.param(3, [(1, 1, 11)], cuts(1, 1, 4, 7, 11), id="inexact multiple"),
        pytest.param(
            4,
            [(1, 1, 5), (2, 1, 21), (3, 1, 1)],
            [(1, 1, 5), *cuts(2, 1, 7, 14, 21)],
            id="an empty one beside skewed",
        ),
        pytest.param(
            6,
            [(1, 0, 10), (2, 0, 10), (3, 0, 1)],
            [*cuts(1, 0, 3, 6, 10), *cuts(2, 0, 3, 6, 10), (3, 0, 1)],
            id="no offset is lost",
        ),
        pytest.param(
            9,
            [(1, 0, 10_000), (2, 0, 15_000), (3, 0, 20_000)],
            [
                *cuts(1, 0, 5000, 10_000),
                *cuts(2, 0, 5000, 10_000, 15_000),
                *cuts(3, 0, 5000, 10_000, 15_000, 20_000),
            ],
            id="no small range and 3 large",
        ),
        pytest.param(
            6,
            [(1, 0, 500), (2, 0, 12_000), (3, 0, 15_001)],
            [(1, 0, 500), *cuts(2, 0, 6000, 12_000), *cuts(3, 0, 5000, 10_000, 15_001)],
            id="1 small range and 2 large",
        ),
        pytest.param(
            6,
            [(1, 0, 1), (2, 0, 1), (3, 0, 10_000)],
            [(1, 0, 1), (2, 0, 1), *cuts(3, 0, 2500, 5000, 7500, 10_000)],
            id="2 small ranges and 1 large",
        ),
    ],
)
def test_ranges_are_cut_until_there_are_about_as_many_as_wanted(
    min_partitions: int | None, given_ranges: list[Piece], expected: list[Piece]
) -> None:
    """RC1, RC2, RC3, RC4, RC5, RC6, RC7, RC8, RC9, RC10, RC11, RC12, RC13, RC14: its table."""
    actual = split(ranges_of(*given_ranges), min_partitions, None)

    assert ranges_of(*expected) == actual


@pytest.mark.parametrize(
    ("min_partitions", "max_records", "given_ranges", "expected"),
    [
        (None, 4, [(1, 1, 5)], [(1, 1, 5)]),
        (None, 4, [(1, 1, 2)], [(1, 1, 2)]),
        (None, 4, [(1, 1, 6)], cuts(1, 1, 3, 6)),
        (
            None,
            20,
            [(1, 1, 40), (2, 1, 50), (3, 1, 60)],
            [*cuts(1, 1, 20, 40), *cuts(2, 1, 17, 33, 50), *cuts(3, 1, 20, 40, 60)],
        ),
        (1, 20, [(1, 1, 40)], cuts(1, 1, 20, 40)),
        (4, 20, [(1, 1, 40)], cuts(1, 1, 10, 20, 30, 40)),
    ],
)
def test_no_range_is_longer_than_it_may_be(
    min_partitions: int | None, max_records: int, given_ranges: list[Piece], expected: list[Piece]
) -> None:
    """RC15, RC16, RC17, RC18: alone, and before they are cut further."""
    actual = split(ranges_of(*given_ranges), min_partitions, max_records)

    assert ranges_of(*expected) == actual


SIZES_OF_RANGES = st.lists(st.tuples(st.integers(0, 2**40), st.integers(-5, 3000)), max_size=6)
LIMITS = st.one_of(st.none(), st.integers(min_value=1, max_value=500))


@settings(max_examples=50)
@given(SIZES_OF_RANGES, LIMITS, LIMITS)
def test_every_offset_is_in_one_range(
    sizes: list[tuple[int, int]], min_partitions: int | None, max_records: int | None
) -> None:
    """None is lost, none is read twice, and each partition is read in order."""
    ranges = [OffsetRange("t", n, start, start + size) for n, (start, size) in enumerate(sizes)]

    pieces = split(ranges, min_partitions, max_records)

    assert all(each.size > 0 for each in pieces)
    assert max_records is None or all(each.size <= max_records for each in pieces)
    for whole in ranges:
        own = [each for each in pieces if each.partition == whole.partition]
        joints = [each.start for each in own] + [each.until for each in own[-1:]]
        assert joints[1:] == [each.until for each in own]
        assert [whole.start, whole.until] == [joints[0], joints[-1]] if own else whole.size <= 0


def test_offsets_that_a_broker_makes_up_make_no_endless_plan() -> None:
    endless = OffsetRange("t", 0, 0, 2**63 - 2)

    with pytest.raises(ConfigError, match=r"would cut .* at most 1000000"):
        split([endless], 5, 10)
    assert 5 == len(split([endless], 5, None))
    assert 1_000_000 == len(split([OffsetRange("t", 0, 0, 1_000_000)], None, 1))


@pytest.mark.parametrize(
    ("offsets", "min_partitions", "max_records", "expected"),
    [
        ((0, LATEST), None, None, False),
        ((0, LATEST), 1, None, False),
        ((0, LATEST), 2, None, True),
        ((0, 11), None, 10, True),
        ((0, 10), None, 10, False),
        ((EARLIEST, LATEST), None, 10, False),  # as in the connector
        ((EARLIEST, 9), None, 10, True),
        ((5, LATEST), None, 10, False),
    ],
)
def test_only_who_cuts_has_to_know_the_ends(
    offsets: tuple[int, int], min_partitions: int | None, max_records: int | None, expected: bool
) -> None:
    assert expected == needs_split([OffsetRange("t", 0, *offsets)], min_partitions, max_records)


def test_a_range_travels_to_a_worker_with_the_id_of_its_topic() -> None:
    [_, second] = split([OffsetRange("t", 1, 0, 10, bytes(range(16)))], 2, None)

    assert second == pickle.loads(pickle.dumps(second))
    assert ("t", 1) == second.topic_partition
    assert bytes(range(16)) == second.topic_id


T0, T1, T2 = (TopicPartition("t", number) for number in range(3))
ID = bytes(range(16))


def plain(ranges: list[OffsetRange]) -> list[tuple[int, int, int]]:
    return [(each.partition, each.start, each.until) for each in ranges]


@pytest.mark.parametrize(
    ("starting", "ending", "starts", "ends", "min_partitions", "expected"),
    [
        (
            SpecificOffsets({T0: 1}),
            SpecificOffsets({T0: 4}),
            {T0: 1},
            {T0: 4},
            3,
            [(0, 1, 2), (0, 2, 3), (0, 3, 4)],
        ),
        (
            Earliest(),
            Latest(),
            {T0: 0},
            {T0: 4},
            3,
            [(0, EARLIEST, 1), (0, 1, 2), (0, 2, LATEST)],
        ),
        (
            SpecificOffsets({T0: EARLIEST, T1: EARLIEST}),
            SpecificOffsets({T0: LATEST, T1: 3}),
            {T0: 0, T1: 0},
            {T0: 100, T1: 3},
            4,
            [(0, EARLIEST, 33), (0, 33, 66), (0, 66, LATEST), (1, EARLIEST, 3)],
        ),
    ],
)
def test_the_outer_ends_of_a_cut_batch_are_bound_late(
    starting: Earliest | SpecificOffsets,
    ending: Latest | SpecificOffsets,
    starts: Offsets,
    ends: Offsets,
    min_partitions: int,
    expected: list[tuple[int, int, int]],
) -> None:
    """OR2, OR3, OR5: between them they are as they were when it was planned."""
    whole = batch_plan(starting.for_partitions(starts), ending.for_partitions(ends))

    assert expected == plain(split_plan(whole, starts, ends, min_partitions, None))


def test_a_whole_batch_is_bound_late() -> None:
    ranges = batch_plan({T1: EARLIEST, T0: 5}, {T0: LATEST, T1: 7}, topic_ids={"t": ID})

    assert [(0, 5, LATEST), (1, EARLIEST, 7)] == plain(ranges)
    assert {ID} == {each.topic_id for each in ranges}


def test_a_batch_has_its_empty_partitions_only_while_their_ends_are_not_known() -> None:
    whole = batch_plan({T0: EARLIEST, T1: EARLIEST}, {T0: LATEST, T1: LATEST})

    actual = split_plan(whole, {T0: 3, T1: 0}, {T0: 3, T1: 4}, None, 2)

    assert [(0, EARLIEST, LATEST), (1, EARLIEST, LATEST)] == plain(whole)
    assert [(1, EARLIEST, 2), (1, 2, LATEST)] == plain(actual)


def test_a_batch_begins_and_ends_in_the_same_partitions() -> None:
    """RE20: those of the start and those of the end are named."""
    with pytest.raises(
        OffsetsMismatchError, match=r"same topic-partitions.*t-2; end for t-0, t-1"
    ) as caught:
        batch_plan({T0: 1, T1: 1, T2: 1}, {T0: 0, T1: 0})

    condition = "MISMATCHED_TOPIC_PARTITIONS_BETWEEN_START_OFFSET_AND_END_OFFSET"
    assert condition == caught.value.condition


def test_a_batch_does_not_end_before_it_begins() -> None:
    """RE21: as it was specified."""
    with pytest.raises(
        OffsetsMismatchError,
        match="specified start offset 1 is greater than the end offset 0 of t-0",
    ):
        batch_plan({T0: 1}, {T0: 0})


def test_a_batch_does_not_end_before_it_begins_when_its_ends_are_known() -> None:
    """RE22, RE23: a time, or the latest, may be earlier than an offset."""
    whole = batch_plan({T0: 3}, {T0: LATEST})

    with pytest.raises(
        OffsetsMismatchError, match="resolved start offset 3 is greater than the end offset 1"
    ):
        split_plan(whole, {T0: 3}, {T0: 1}, 4, None)
    with pytest.raises(OffsetsMismatchError, match="resolved start offset 3"):
        check_order(T0, 3, 1, is_resolved=True)


@pytest.mark.parametrize(("start", "end"), [(EARLIEST, 0), (0, LATEST), (LATEST, LATEST), (3, 3)])
def test_what_is_not_known_yet_has_no_order(start: int, end: int) -> None:
    check_order(T0, start, end)


def test_a_micro_batch_reads_from_its_start_to_its_end() -> None:
    """OR6: cut as was asked for."""
    ranges, losses = stream_plan(
        {T0: 0, T1: 0}, {T0: 100, T1: 3}, {}, min_partitions=4, topic_ids={"t": ID}
    )

    assert [(0, 0, 33), (0, 33, 66), (0, 66, 100), (1, 0, 3)] == plain(ranges)
    assert {ID} == {each.topic_id for each in ranges}
    assert [] == losses


@pytest.mark.parametrize(("min_partitions", "count"), [(None, 1), (1, 1), (4, 4)])
def test_a_micro_batch_has_at_least_so_many_tasks(min_partitions: int | None, count: int) -> None:
    """MB25: one partition, 100 offsets."""
    assert count == len(stream_plan({T0: 0}, {T0: 100}, {}, min_partitions=min_partitions)[0])


def test_a_new_partition_is_read_from_its_begin() -> None:
    assert ([OffsetRange("t", 1, 0, 5, NO_UUID)], []) == stream_plan(
        {T0: 3}, {T0: 3, T1: 5}, {T1: 0}
    )


@pytest.mark.parametrize(
    ("start", "end", "earliest", "kind", "message", "ranges"),
    [
        (
            {T0: 3},
            {T0: 3, T1: 9},
            {T1: 4},
            AddedPartitionError,
            "t-1 starts at offset 4",
            [(1, 4, 9)],
        ),
        ({T0: 3}, {T0: 4, T1: 9}, {}, InitialOffsetNotFoundError, "t-1", [(0, 3, 4)]),
        ({T0: 3, T1: 5}, {T0: 4}, {}, PartitionsDeletedError, "deleted: t-1", [(0, 3, 4)]),
        ({T0: 2, T1: 0}, {T0: 1, T1: 1}, {}, OffsetChangedError, "from 2 to 1", [(1, 0, 1)]),
    ],
)
def test_what_is_lost_is_reported_and_the_rest_is_read(
    start: Offsets,
    end: Offsets,
    earliest: Offsets,
    kind: type[DataLossError],
    message: str,
    ranges: list[tuple[int, int, int]],
) -> None:
    """DL5: it names its partitions and says what to do; no range is negative."""
    planned, losses = stream_plan(start, end, earliest)

    [loss] = losses
    assert kind is type(loss)
    assert message in str(loss)
    assert "failOnDataLoss to false" in str(loss)
    assert loss.condition.startswith("KAFKA_DATA_LOSS.")
    assert ranges == plain(planned)


def test_a_checkpoint_of_another_query_is_told_from_topics_that_were_deleted() -> None:
    _, losses = stream_plan({T0: 3, T1: 5}, {}, {}, dropped={T1})

    unread, deleted = map(str, losses)
    assert "does not subscribe to t-1, of which its checkpoint has offsets" in unread
    assert "checkpointLocation of its own" in unread
    assert "have been deleted: t-0" in deleted


def test_a_loss_travels_from_a_worker() -> None:
    loss = OffsetChangedError("from 2 to 1")
    mismatch = OffsetsMismatchError("CONDITION", "what")

    assert str(loss) == str(pickle.loads(pickle.dumps(loss)))
    assert str(mismatch) == str(pickle.loads(pickle.dumps(mismatch)))


@pytest.mark.parametrize(
    ("end", "prefetched", "latest"),
    [
        ({T0: 3, T1: 4}, {T0: 3, T1: 9}, {T0: 3, T1: 9}),
        ({T0: 3}, {T0: 3}, {T0: 30, T1: 1}),
    ],
)
def test_a_run_that_ends_where_it_was_fixed_is_right(
    end: Offsets, prefetched: Offsets, latest: Offsets
) -> None:
    verify_available_now(end, prefetched, latest)


@pytest.mark.parametrize(
    ("end", "prefetched", "latest", "condition"),
    [
        (
            {T0: 3},
            {T0: 3, T1: 1},
            {T0: 3, T1: 1},
            "MISMATCHED_TOPIC_PARTITIONS_BETWEEN_END_OFFSET_AND",
        ),
        (
            {T0: 4},
            {T0: 3},
            {T0: 9},
            "END_OFFSET_HAS_GREATER_OFFSET_FOR_TOPIC_PARTITION_THAN_PREFETCHED",
        ),
        ({T0: 3}, {T0: 3}, {}, "LOST_TOPIC_PARTITIONS_IN_END_OFFSET_WITH_TRIGGER_AVAILABLENOW"),
        (
            {T0: 3},
            {T0: 3},
            {T0: 2},
            "END_OFFSET_HAS_GREATER_OFFSET_FOR_TOPIC_PARTITION_THAN_LATEST",
        ),
    ],
)
def test_a_run_that_ends_elsewhere_says_what_has_changed(
    end: Offsets, prefetched: Offsets, latest: Offsets, condition: str
) -> None:
    with pytest.raises(OffsetsMismatchError, match="restart the query") as caught:
        verify_available_now(end, prefetched, latest)

    assert caught.value.condition.startswith(condition)
    assert '{"t":{"0":' in str(caught.value)


PARTITIONS = [TopicPartition("t", number) for number in range(3)]


def offsets(*numbers: int) -> Offsets:
    return dict(zip(PARTITIONS, numbers, strict=False))


def test_each_partition_gets_its_share_and_none_starves() -> None:
    """At most 10 of 101, 11 and 1: 1 of the smallest, 1 of the middle, 8 of the largest; on."""
    end = offsets(101, 11, 1)
    start = offsets(0, 0, 0)
    batches = []
    for _ in range(4):
        start = rate_limited(10, start, end, {})
        batches.append(start)

    expected = [(8, 1, 1), (17, 2, 1), (26, 3, 1), (35, 4, 1)]
    assert [offsets(*each) for each in expected] == batches


def test_the_largest_limit_is_no_limit() -> None:
    """SPARK-26718: nothing overflows."""
    assert rate_limited(LONG_MAX, offsets(5), offsets(10), {}) == offsets(10)
    assert rate_limited(LONG_MAX, offsets(5), offsets(LONG_MAX), {}) == offsets(LONG_MAX)


def test_the_first_batch_of_least_and_most_holds_at_most_the_most() -> None:
    """20 of 21, 11 and 1: the shares are rounded down."""
    assert rate_limited(20, offsets(0, 0, 0), offsets(21, 11, 1), {}) == offsets(12, 6, 1)


def test_a_limited_batch_reads_a_new_partition_from_its_begin() -> None:
    actual = rate_limited(4, offsets(0), offsets(10, 110), {PARTITIONS[1]: 100})

    assert actual == offsets(2, 102)


def test_what_waits_nowhere_is_left_alone() -> None:
    assert rate_limited(5, offsets(7, 7), offsets(7, 7), {}) == offsets(7, 7)
    # Nobody knows where it begins: whoever plans the batch says so.
    assert rate_limited(5, {}, offsets(7), {}) == offsets(7)
    # It went back: that is for whoever looks for losses.
    assert rate_limited(5, offsets(9, 0), offsets(7, 20), {}) == offsets(7, 5)


SIZES = st.lists(st.integers(min_value=0, max_value=2**50), min_size=3, max_size=3)


@settings(max_examples=50)
@given(st.integers(min_value=1, max_value=LONG_MAX), SIZES, SIZES)
def test_a_batch_goes_on_and_never_beyond_the_end(
    limit: int, begins: list[int], sizes: list[int]
) -> None:
    start = offsets(*begins)
    end = offsets(*(begin + size for begin, size in zip(begins, sizes, strict=True)))

    actual = rate_limited(limit, start, end, {})

    assert end.keys() == actual.keys()
    assert all(start[each] <= actual[each] <= end[each] for each in end)
    assert all(actual[each] > start[each] for each in end if end[each] > start[each])
    taken = sum(actual[each] - start[each] for each in end)
    # Shares are doubles, and those below one offset are rounded up.
    assert taken <= limit * (1 + 1e-9) + len(end)


def test_a_batch_waits_until_there_is_enough_or_its_time_has_come() -> None:
    """The batches of the connector's suite: 16, then 6 too few, 18, then 10 until the delay."""
    delay = TriggerDelay(15, 5.0)
    now = 1000.0
    assert not delay.waits(offsets(0, 0, 0), offsets(10, 5, 1), {}, now)

    assert delay.waits(offsets(10, 5, 1), offsets(10, 11, 1), {}, now + 0.1)
    assert not delay.waits(offsets(10, 5, 1), offsets(21, 11, 2), {}, now + 0.2)

    assert delay.waits(offsets(21, 11, 2), offsets(26, 16, 2), {}, now + 0.3)
    assert delay.waits(offsets(21, 11, 2), offsets(26, 16, 2), {}, now + 5.1)
    assert not delay.waits(offsets(21, 11, 2), offsets(26, 16, 2), {}, now + 5.2)


def test_the_first_batch_never_waits() -> None:
    assert not TriggerDelay(1000, 900.0).waits(offsets(0), offsets(1), {}, 0.0)


def test_a_new_partition_counts_from_its_begin() -> None:
    delay = TriggerDelay(10, 900.0)
    assert not delay.waits(offsets(0), offsets(1), {}, 0.0)

    assert delay.waits(offsets(1), offsets(1, 1009), {PARTITIONS[1]: 1000}, 1.0)
    assert not delay.waits(offsets(1), offsets(1, 1010), {PARTITIONS[1]: 1000}, 1.0)
