from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.client._topic_partition import TopicPartition
from trionet.client.consumer.records._chunk import Chunk, FetchPosition
from trionet.protocol.records._types import Columns

START, END = FetchPosition(3, 0), FetchPosition(20, 1)
OFFSETS = [5, 6, 9, 10, 15]


def chunk() -> Chunk:
    count = len(OFFSETS)
    columns = Columns(
        list(OFFSETS),
        [1000 + each for each in OFFSETS],
        [None] * count,
        [b"%d" % each for each in OFFSETS],
        [(), (("h", b"1"),), (), (), ()],
    )
    return Chunk(TopicPartition("t", 4), columns, 1, 1, START, END, 3)


def test_records_have_all_their_fields() -> None:
    [first, second, *_] = chunk().records

    assert ("t", 4, 5, 1005, None, b"5", (), 1, 1) == first
    assert (("h", b"1"),) == second.headers


def test_positions_between_records() -> None:
    it = chunk()
    found = [it.position(), *(it.position() for _ in it.records)]

    assert [START, *(FetchPosition(each + 1, 1) for each in OFFSETS[:-1]), END] == found


def test_all_but_the_record_in_hand_are_finished() -> None:
    it = chunk()
    assert START == it.finished()
    next(it.records)
    assert START == it.finished()
    next(it.records)
    assert FetchPosition(6, 1) == it.finished()
    it.finish()
    assert FetchPosition(7, 1) == it.finished()


def test_stopped_chunk_hands_out_nothing_and_stays_where_it_was() -> None:
    it = chunk()
    next(it.records)
    it.stop()

    assert [] == list(it.records)
    assert FetchPosition(6, 1) == it.position()


def test_batch_in_hand_is_not_finished() -> None:
    it = chunk()
    next(it.records)
    it.finish()
    batch = it.take(3)

    assert ([6, 9, 10], [b"6", b"9", b"10"]) == (batch.offsets, batch.values)
    assert (FetchPosition(11, 1), FetchPosition(6, 1)) == (it.position(), it.finished())
    it.finish()
    assert FetchPosition(11, 1) == it.finished()
    assert [15] == [each.offset for each in it.records]
    assert it.is_done


@given(st.lists(st.one_of(st.none(), st.integers(1, 3)), max_size=8))
def test_records_and_batches_in_any_order(steps: list[int | None]) -> None:
    it = chunk()
    found: list[int] = []
    for step in steps:
        it.finish()
        if len(found) == len(OFFSETS):
            break
        if step is None:
            found.append(next(it.records).offset)
        else:
            found += it.take(step).offsets
        expected = END.offset if len(found) == len(OFFSETS) else OFFSETS[len(found) - 1] + 1
        assert expected == it.position().offset

    assert OFFSETS[: len(found)] == found


def test_batch_as_arrow() -> None:
    table = chunk().take(2).arrow()

    assert isinstance(table, pa.RecordBatch)
    assert [5, 6] == table.column("offset").to_pylist()
    assert [b"5", b"6"] == table.column("value").to_pylist()
    assert [None, None] == table.column("key").to_pylist()
    assert [None, [{"key": "h", "value": b"1"}]] == table.column("headers").to_pylist()
    assert 1005 == table.column("timestamp")[0].value


def test_batch_as_records() -> None:
    batch = chunk().take(100)

    assert list(chunk().records) == list(batch)
    assert 5 == len(batch)
    with pytest.raises(AttributeError):
        batch.topic = "u"  # type: ignore[misc]
