"""From offsets to the ranges that are read, and what is found to be lost on the way."""

from __future__ import annotations

import pickle

import pytest

from trionet.client._topic_partition import TopicPartition
from trionet.protocol._wire import NO_UUID
from trionet.spark.offsets._errors import (
    AddedPartitionError,
    DataLossError,
    InitialOffsetNotFoundError,
    OffsetChangedError,
    OffsetsMismatchError,
    PartitionsDeletedError,
)
from trionet.spark.offsets._offset_limits import Earliest, Latest, SpecificOffsets
from trionet.spark.offsets._partition_offsets import EARLIEST, LATEST, Offsets
from trionet.spark.offsets._planning import (
    Plan,
    batch_plan,
    check_order,
    split_plan,
    stream_plan,
    verify_available_now,
)
from trionet.spark.offsets._ranges import OffsetRange

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
    plan = stream_plan({T0: 0, T1: 0}, {T0: 100, T1: 3}, {}, min_partitions=4, topic_ids={"t": ID})

    assert [(0, 0, 33), (0, 33, 66), (0, 66, 100), (1, 0, 3)] == plain(plan.ranges)
    assert {ID} == {each.topic_id for each in plan.ranges}
    assert [] == plan.losses


@pytest.mark.parametrize(("min_partitions", "count"), [(None, 1), (1, 1), (4, 4)])
def test_a_micro_batch_has_at_least_so_many_tasks(min_partitions: int | None, count: int) -> None:
    """MB25: one partition, 100 offsets."""
    assert count == len(stream_plan({T0: 0}, {T0: 100}, {}, min_partitions=min_partitions).ranges)


def test_a_new_partition_is_read_from_its_begin() -> None:
    assert Plan([OffsetRange("t", 1, 0, 5, NO_UUID)], []) == stream_plan(
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
    plan = stream_plan(start, end, earliest)

    [loss] = plan.losses
    assert kind is type(loss)
    assert message in str(loss)
    assert "failOnDataLoss to false" in str(loss)
    assert loss.condition.startswith("KAFKA_DATA_LOSS.")
    assert ranges == plain(plan.ranges)


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
